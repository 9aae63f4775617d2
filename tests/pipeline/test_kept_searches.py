"""Files of searches: found by the next compilation, of other models too; harmless where they are damaged or cannot be
written."""

import json

import pytest
from cli import models

from tests.cli.conftest import cli  # noqa: F401
from tilec.pipeline import kept_searches


@pytest.fixture
def searches(tmp_path, monkeypatch):
    """The folder of searches in a cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "tilec" / "searches"


def plan(cli, tmp_path, name):  # noqa: F811
    ran = cli("compile", "model.onnx", "--device", "zen5-avx512", "--to", "schedule", "-o", name)
    assert ran.code == 0, ran.err
    return (tmp_path / name / "2-plan.json").read_bytes()


def test_the_next_search_reads_what_one_kept(cli, tmp_path, searches):  # noqa: F811
    models.mlp(tmp_path / "model.onnx")
    first = plan(cli, tmp_path, "a")
    (file,) = searches.iterdir()
    entries = json.loads(file.read_text())
    assert entries
    assert plan(cli, tmp_path, "b") == first
    assert json.loads(file.read_text()) == entries
    for number, text in enumerate(("", "[]", "{", '{"a": [1]}')):
        file.write_text(text)
        assert plan(cli, tmp_path, f"c{number}") == first
        assert json.loads(file.read_text()).items() >= entries.items()


def test_files_stay_few_and_small(cli, tmp_path, searches, monkeypatch):  # noqa: F811
    monkeypatch.setattr(kept_searches, "MOST_ENTRIES", 3)
    monkeypatch.setattr(kept_searches, "MOST_FILES", 2)
    searches.mkdir(parents=True)
    for number in range(4):
        (searches / f"{number:024}-{number:016}.json").write_text("{}")
    models.mlp(tmp_path / "model.onnx")
    plan(cli, tmp_path, "a")
    files = sorted(searches.iterdir(), key=lambda file: file.stat().st_mtime)
    assert len(files) == 2
    assert len(json.loads(files[-1].read_text())) == 3


def test_a_cache_that_cannot_be_written_costs_time_only(cli, tmp_path, searches):  # noqa: F811
    searches.parent.mkdir(parents=True)
    searches.write_text("a file")
    models.mlp(tmp_path / "model.onnx")
    plan(cli, tmp_path, "a")
