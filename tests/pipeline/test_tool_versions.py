"""The programs that take part in compiling."""

import shutil
from pathlib import Path

import tilec
from tilec.pipeline.tool_versions import _sources, tools


def test_versions_of_all_are_told():
    found = tools()
    assert found["tilec"].startswith(f"{tilec.__version__} ")
    assert {"numpy", "onnx", "onnxruntime"} <= {name for name, version in found.items() if version}


def test_a_changed_source_is_another_tilec_and_another_place_is_not(tmp_path):
    root, copy = Path(tilec.__file__).parent, tmp_path / "tilec"
    shutil.copytree(root, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (here,) = _sources(root)
    assert tools()["tilec"].endswith(f" {here}")
    assert _sources(copy) == (here,)
    (copy / "errors.py").write_text("")
    assert _sources(copy) != (here,)


def test_a_package_in_an_archive_has_no_files(tmp_path):
    assert _sources(tmp_path / "tilec.zip" / "tilec") == ()
