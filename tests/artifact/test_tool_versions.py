"""Versions of the programs: found without reading what packages say of themselves, sources by what they hold."""

import os
import shutil
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

import tilec
from tilec.artifact import tools
from tilec.artifact.tool_versions import _PACKAGES, _sources, _version


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def package(tmp_path):
    """A package of two files that have been there for a while."""
    root = tmp_path / "package"
    (root / "inner").mkdir(parents=True)
    for name in ("one.py", "inner/two.py"):
        (root / name).write_text("x = 1\n")
    return root


@pytest.fixture
def later(monkeypatch):
    """Lets the files be old: the clock goes on for a minute."""
    return lambda: monkeypatch.setattr("tilec.artifact.tool_versions.time.time", lambda: NOW() + 60)


NOW = time.time


def test_versions_of_all_are_told():
    found = tools()
    assert found["tilec"].startswith(f"{tilec.__version__} ")
    assert {"numpy", "onnx", "onnxruntime"} <= {name for name, version in found.items() if version}


def test_a_changed_source_is_another_tilec_and_another_place_is_not(tmp_path, cache):
    root, copy = Path(tilec.__file__).parent, tmp_path / "tilec"
    shutil.copytree(root, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (here,) = _sources(root)
    assert tools()["tilec"].endswith(f" {here}")
    assert _sources(copy) == (here,)
    (copy / "errors.py").write_text("")
    assert _sources(copy) != (here,)


def test_a_package_in_an_archive_has_no_files(tmp_path):
    assert _sources(tmp_path / "tilec.zip" / "tilec") == ()


def test_sources_are_read_once_while_they_stay_as_they_are(cache, package, later, monkeypatch):
    later()
    first = _sources(package)
    read = []
    monkeypatch.setattr(Path, "read_bytes", lambda path: read.append(path) or b"")
    assert _sources(package) == first
    assert not read


@pytest.mark.parametrize("change", ["bytes", "same size and times", "another file", "renamed", "no file"])
def test_what_changed_is_read_again(cache, package, later, change):
    later()
    first, path = _sources(package), package / "inner" / "two.py"
    if change == "bytes":
        path.write_text("x = 22\n")
    elif change == "same size and times":
        state = path.stat()
        (package / "aside").write_text("x = 2\n")
        os.replace(package / "aside", path)
        os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    elif change == "another file":
        (package / "three.py").write_text("")
    elif change == "renamed":
        path.rename(path.with_name("three.py"))
    else:
        path.unlink()
    assert _sources(package) != first


def test_files_written_a_moment_ago_are_not_remembered(cache, package, later):
    _sources(package)
    assert not list(cache.rglob("sources-*"))
    later()
    _sources(package)
    (note,) = cache.rglob("sources-*")
    note.write_text("damaged")
    assert len(_sources(package)[0]) == 12


@pytest.mark.parametrize("name", _PACKAGES)
def test_versions_are_those_that_packages_tell(name):
    try:
        told = version(name)
    except PackageNotFoundError:
        told = ""
    assert _version(name) == told


def test_a_package_that_no_folder_tells_of_is_asked(tmp_path, monkeypatch):
    monkeypatch.setattr("tilec.artifact.tool_versions._listed", lambda _: ())
    assert _version("numpy") == version("numpy")
    assert _version("no-such-package") == ""
