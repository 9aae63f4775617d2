"""`tilec cache`: what is listed, which entry a model would use and why not, what is removed and what stays."""

import json
import os
import time
from itertools import count

import pytest

from cli import models
from tilec.api import compiling, worker
from tilec.api.any_size import Attempt
from tilec.api.cache import Cache
from tilec.api.size_counts import SizeCount, SizeCounts, counts_text
from tilec.background import Failure, Order, Queue, Status, tell
from tilec.cli.cache_request import request_of
from tilec.cli.shape_flags import SizeRange
from tilec.errors import UnsupportedError

A = "a" * 32
DAY = 86400


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A cache of its own, with an old object file, a young curve and somebody's file."""
    root = tmp_path / "home/tilec"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    for place, age in ((f"objects/tilec_add-{A[:16]}.o", 40 * DAY), (f"bounds/{A}.json", 60), ("mine.txt", 90 * DAY)):
        path = root / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(1024))
        os.utime(path, (time.time() - age,) * 2)
    return root


def files(root):
    return sorted(path.name for path in root.rglob("*") if path.is_file())


def test_the_list(cli, home, golden):
    ran = cli("cache", "list")
    assert ran.code == 0
    golden("cache-list.txt", ran.out)
    assert ran.err == f"{home}: 2.0 KiB\n"


def test_the_list_as_json(cli, home):
    told = json.loads(cli("cache", "list", "--json").out)
    assert (told["bytes"], told["entries"], told["folder"]) == (2048, [], str(home))
    assert told["kinds"]["objects"] == {
        "bytes": 1024,
        "count": 1,
        "meaning": "object files of kernels, by their source and tools",
        "oldest_seconds": pytest.approx(40 * DAY, abs=60),
    }


def test_entries_of_a_kind(cli, home):
    told = json.loads(cli("cache", "list", "--kind", "bounds", "--json").out)
    assert list(told["kinds"]) == ["bounds"]
    (entry,) = told["entries"]
    assert sorted(entry) == ["age_seconds", "bytes", "kind", "name", "what"]
    assert entry["name"] == f"bounds/{A}.json"
    assert cli("cache", "list", "--kind", "bounds").out.splitlines()[1].startswith(f"bounds/{A}.json  1.0 KiB  1 min")


def test_an_empty_cache(cli, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "none"))
    assert json.loads(cli("cache", "list", "--json").out)["bytes"] == 0
    assert cli("cache", "clear").err == "removed 0 entries, 0 bytes\n"
    assert not (tmp_path / "none").exists()


def test_clear_by_age(cli, home):
    ran = cli("cache", "clear", "--older-than", "30d", "--dry-run")
    assert (ran.out, ran.err) == (f"objects/tilec_add-{A[:16]}.o\n", "would remove 1 entry, 1.0 KiB\n")
    assert len(files(home)) == 3
    ran = cli("cache", "clear", "--older-than", "30d")
    assert (ran.code, ran.out, ran.err) == (0, "", "removed 1 entry, 1.0 KiB\n")
    assert files(home) == [f"{A}.json", "mine.txt"]


def test_clear_a_kind(cli, home):
    told = json.loads(cli("cache", "clear", "--kind", "bounds", "--json").out)
    assert told == {"bytes": 1024, "entries": [f"bounds/{A}.json"], "removed": True}
    assert files(home) == ["mine.txt", f"tilec_add-{A[:16]}.o"]


def test_clear_leaves_what_is_not_the_cache_s(cli, home):
    assert cli("cache", "clear").code == 0
    assert files(home) == ["mine.txt"]


def test_the_compiler_in_the_background(cli, home, monkeypatch):
    queue = Queue(home)
    for key in "abc":
        queue.add(Order(key * 64, f"{key}.onnx", ("true",), "", "", "/"))
    queue.fail(queue.waiting()[2], Failure("c.onnx", "UnsupportedError", "too strange", None, None, time.time()))
    assert cli("cache", "list").err.splitlines()[:2] == [
        "2 models wait for the compiler in the background, which has ended",
        "c.onnx failed, tried again by another version of tilec: too strange",
    ]
    assert cli("cache", "stop").err == "no compiler is running in the background; 2 models wait for the next session\n"
    queue.begun(queue.waiting()[0], 1)
    tell(queue.status_file, Status("a.onnx", time.time() - 8, "schedule", "fuse", 12, 35))
    with queue.held():
        assert cli("cache", "list").err.startswith(
            "compiling a.onnx: schedule, fuse: 12 of 35, for 8 s; 1 model waits\n"
        )
        told = json.loads(cli("cache", "list", "--kind", "queue", "--json").out)
        monkeypatch.setattr("tilec.background.queue.time.monotonic", count(0, 20).__next__)
        stopped = cli("cache", "stop")
    assert told["compiler"]["status"] == {
        "done": 12,
        "model": "a.onnx",
        "seconds": 8,
        "stage": "schedule",
        "step": "fuse",
        "total": 35,
    }
    assert told["compiler"]["waiting"] == ["b.onnx"]
    assert told["compiler"]["failed"] == [{"message": "too strange", "model": "c.onnx"}]
    assert [entry["what"] for entry in told["entries"]] == [
        "a.onnx: schedule, fuse: 12 of 35, for 8 s",
        "b.onnx waits",
        "c.onnx failed, tried again by another version of tilec: too strange",
    ]
    assert (stopped.code, stopped.err.splitlines()[0]) == (
        1,
        f"error: {queue.folder}: the compiler in the background does not end",
    )
    cli("cache", "clear", "--kind", "queue")
    assert queue.waiting() == queue.failures() == []


def test_what_cannot_be_removed(cli, home, monkeypatch):
    monkeypatch.setattr("tilec.report.cache_listing.remove", lambda entry: entry.kind == "bounds")
    ran = cli("cache", "clear")
    assert ran.code == 1
    assert ran.err.endswith(f"error: {home}: 1 of 2 entries cannot be removed\n  Check who owns the files there.\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["list", "--kind", "object"], "error: --kind: nothing of kind 'object' is kept\n  Did you mean 'objects'?\n"),
        (["clear", "--older-than", "soon"], "error: --older-than: 'soon' is no age\n  Write it like 30d, "),
        (["clear", "--older-than", "-3d"], "error: --older-than: '-3d' is no age"),
        (["why", "none.onnx"], "error: none.onnx: no such file"),
        (
            ["why", "model.onnx", "--device", "avx2", "--shape", "bach=2"],
            "error: --shape: the model has no symbol 'bach'\n  Did you mean",
        ),
        (["why", "model.onnx", "--bind", "bach=2"], "error: --bind: the model has no symbol 'bach'\n  Did you mean"),
        (["why", "model.onnx", "--bind", "batch=2", "--device", "moon"], "error: "),
    ],
)
def test_refusals(cli, home, tmp_path, arguments, said):
    models.mlp(tmp_path / "model.onnx", batch="batch")
    ran = cli("cache", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(said)
    assert len(files(home)) >= 3


def test_why(cli, home, tmp_path, monkeypatch):
    monkeypatch.setattr(compiling, "_run", worker.build)
    models.mlp(tmp_path / "model.onnx", batch="batch")
    model = ["model.onnx", "--device", "avx2"]

    ran = cli("cache", "why", *model, "--bind", "batch=2")
    assert ran.out.startswith("miss: sessions/")
    assert ran.out.endswith(" is not there\n  nothing in the cache was compiled from a file with these bytes\n")

    compiling.compiled_folder(request_of(tmp_path / "model.onnx", {"batch": 2}, "avx2", None, home))
    told = json.loads(cli("cache", "why", *model, "--bind", "batch=2", "--json").out)
    assert sorted(told) == ["entry", "hit", "model", "needs_sizes", "others", "sizes"]
    assert (told["hit"], told["others"], told["sizes"]) == (True, {}, {"batch": 2})
    entry = told["entry"]
    assert (home / entry / "3-kernels.json").is_file()
    assert cli("cache", "why", *model, "--bind", "batch=2").out == f"hit: {entry}\n"
    assert "model for avx2, x [2, 16]" in cli("cache", "list", "--kind", "sessions").out

    said = cli("cache", "why", *model, "--bind", "batch=3").out.splitlines()
    assert said[1:] == [f"  {entry}: x is [2, 16] instead of [3, 16]"]
    said = cli("cache", "why", "model.onnx", "--device", "zen5-avx512", "--bind", "batch=2").out.splitlines()
    assert said[1:] == [f"  {entry}: device avx2 instead of zen5-avx512"]
    monkeypatch.setenv("TILEC_SCHEDULE_FUSION", "none")
    said = cli("cache", "why", *model, "--bind", "batch=2").out.splitlines()
    assert said[0].startswith("miss: ")
    assert said[1].startswith(f"  {entry}: tilec, a tool, the recipe, ")

    assert cli("cache", "clear", "--kind", "sessions").code == 0
    assert not (home / entry).exists()
    assert cli("cache", "why", *model, "--bind", "batch=2").out.startswith("miss: ")


def test_entries_for_any_size_and_for_those_bound(cli, home, tmp_path, monkeypatch):
    monkeypatch.setattr(compiling, "_run", worker.build)
    model = models.mlp(tmp_path / "model.onnx", batch="batch")
    requests = [request_of(model, bound, "avx2", None, home) for bound in ({"batch": SizeRange(1, 64)}, {"batch": 2})]
    any_size, bound = (compiling.compiled_folder(request).relative_to(home).as_posix() for request in requests)
    listed = cli("cache", "list", "--kind", "sessions").out
    assert "model for avx2, any size: batch 1..64 (recipe: shapes.batch)\n" in listed
    assert "model for avx2, x [2, 16]" in listed
    counts = SizeCounts(5, (SizeCount({"batch": 3}, 4), SizeCount({"batch": 1}, 1)))
    Cache(home).keep(Cache(home).model(requests[0].sha256) / "sizes.json", counts_text(counts))
    told = {
        e["name"]: e["what"] for e in json.loads(cli("cache", "list", "--kind", "sessions", "--json").out)["entries"]
    }
    assert told[any_size].endswith("(recipe: shapes.batch); 5 calls, 4 of them batch=3")
    assert told[bound] == "model for avx2, x [2, 16]"
    said = cli("cache", "why", "model.onnx", "--device", "avx2", "--bind", "batch=1..64").out.splitlines()
    assert said == [f"hit: {any_size}", f"  {bound}: x is [2, 16] instead of [?, 16]"]


def test_why_a_model_has_entries_for_single_sizes(cli, home, tmp_path):
    model = models.mlp(tmp_path / "model.onnx", batch="batch")
    request = request_of(model, {}, "avx2", None, home)
    Attempt(request).remember(UnsupportedError("the size batch is not bound"))
    asked = ["cache", "why", "model.onnx", "--device", "avx2"]
    assert cli(*asked).out.splitlines()[1] == "  it needs its sizes, --shape SYMBOL=SIZE: the size batch is not bound"
    told = json.loads(cli(*asked, "--shape", "batch=2", "--json").out)
    assert (told["sizes"], told["needs_sizes"]) == ({"batch": 2}, "the size batch is not bound")


def test_a_damaged_entry_is_listed_and_passed_over(cli, home, tmp_path):
    (home / f"sessions/{A}").mkdir(parents=True)
    (home / f"sessions/{A}/3-kernels.json").write_text("[1]")
    models.mlp(tmp_path / "model.onnx")
    assert f"sessions/{A}" in cli("cache", "list", "--kind", "sessions").out
    assert cli("cache", "why", "model.onnx", "--device", "avx2").code == 0
