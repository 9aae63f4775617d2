"""`tilec schedule --profile`: measured once, then the record decides; interrupts and read-only files do no harm."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from onnx import helper

from cli import models
from tilec.bench import measure
from tilec.bench.candidate import Builder, Timer
from tilec.ir.plan import Plan
from tilec.scheduler.tuning.record import parse_record


def attention_like(path: Path, rows: int | str = 192) -> Path:
    """softmax(relu(x @ w1) @ w2), large enough that there is something to choose."""
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["a"], name="first"),
        helper.make_node("Relu", ["a"], ["b"], name="relu"),
        helper.make_node("MatMul", ["b", "w2"], ["c"], name="second"),
        helper.make_node("Softmax", ["c"], ["y"], name="softmax"),
    ]
    weights = [models.weight("w1", 128, 256), models.weight("w2", 256, 192)]
    return models.save(path, nodes, [models.value("x", rows, 128)], [models.value("y", rows, 192)], weights)


class Fixed(Timer):
    """Takes for every candidate a time that depends on nothing but its kernels."""

    def time(self, plan: Plan, folder: Path, contest: int, seconds: float, best: float, limit: float) -> float:
        kernels = " ".join(group.variants[0].kernel for group in plan.groups)
        return int(hashlib.sha256(kernels.encode()).hexdigest()[:6], 16) * 1e-9


class Pretending(Builder):
    """Builds nothing."""

    def build(self, plan: Plan, folder: Path, seconds: float) -> str | None:
        return None


def nothing_is_measured(*_: object) -> None:
    raise AssertionError("something is measured")


@pytest.fixture
def graph(cli, tmp_path):
    """1-graph.json of the model, in `tmp_path`."""
    attention_like(tmp_path / "model.onnx")
    assert cli("import", "model.onnx", "-o", "g.json").code == 0
    return tmp_path / "g.json"


@pytest.mark.feature("W20")
def test_what_was_measured_is_taken_from_the_record(cli, graph, tmp_path, monkeypatch):
    first = cli("schedule", graph, "--profile", "--record", "r.json", "--budget", 3, "-o", "p.json")
    assert first.code == 0, first.err
    entries = parse_record((tmp_path / "r.json").read_text(), "").entries
    lines = [line for line in first.err.splitlines() if line.startswith("group ")]
    assert len(lines) == len(entries) > 0
    assert all("(no entry for this group)" in line and "best" in line for line in lines)
    assert f"tuning: {len(entries)} measured\n" in first.err
    monkeypatch.setattr(measure.Bench, "__call__", nothing_is_measured)
    record = (tmp_path / "r.json").read_bytes()
    for number, given in enumerate((["--profile", "--budget", 3], ["--budget", 3], ["--profile", "--budget", 2])):
        again = cli("schedule", graph, "--record", "r.json", *given, "-o", f"p{number}.json")
        assert f"tuning: {len(entries)} recorded\n" in again.err
        if 2 not in given:  # the budget is part of the recipe
            assert (tmp_path / f"p{number}.json").read_bytes() == (tmp_path / "p.json").read_bytes()
    assert (tmp_path / "r.json").read_bytes() == record
    header = json.loads((tmp_path / "p.json").read_text())["artifact"]
    assert header["inputs"]["record"] == hashlib.sha256(record).hexdigest()
    fresh = cli("schedule", graph, "--record", "r.json", "--budget", 3, "-o", "p.json")
    assert "schedule: unchanged, skipped" in fresh.err


@pytest.mark.feature("W40")
def test_any_number_of_workers_makes_the_same_bytes(cli, graph, tmp_path, monkeypatch):
    monkeypatch.setattr(measure.Bench, "builder", Pretending)
    monkeypatch.setattr(measure.Bench, "timer", Fixed)
    made = set()
    for workers in (1, 3):
        monkeypatch.setattr(measure, "usable_cpus", lambda workers=workers: list(range(workers)))
        ran = cli("schedule", graph, "--profile", "--record", f"r{workers}.json", "--budget", 2, "-o", "p.json")
        assert ran.code == 0, ran.err
        made.add(((tmp_path / "p.json").read_bytes(), (tmp_path / f"r{workers}.json").read_bytes()))
    assert len(made) == 1


def test_the_record_lies_beside_the_plan_unless_it_is_named(cli, graph, tmp_path, monkeypatch):
    monkeypatch.setattr(measure.Bench, "builder", Pretending)
    monkeypatch.setattr(measure.Bench, "timer", Fixed)
    assert cli("schedule", graph, "--profile", "--budget", 2, "-o", "out/").code == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "2-plan.json",
        "device.yaml",
        "model.onnx",
        "recipe.yaml",
        "run.json",
        "tuning.json",
    ]


def test_a_record_of_other_groups_says_what_it_lacks(cli, graph, tmp_path):
    (tmp_path / "r.json").write_text('{"kind": "tuning", "format": 1, "entries": []}')
    ran = cli("schedule", graph, "--record", "r.json", "-o", "p.json")
    assert ran.code == 0
    assert " left to the model (no entry for this group: " in ran.err
    plain = cli("schedule", graph, "-o", "plain.json")
    assert "tuning" not in plain.err
    plans = [json.loads((tmp_path / name).read_text()) for name in ("p.json", "plain.json")]
    assert {**plans[0], "artifact": 0} == {**plans[1], "artifact": 0}


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (None, "no such tuning record\n  `tilec schedule --profile --record FILE` writes it."),
        ("{", "r.json:1:2: not JSON"),
        ('{"artifact": {}}', "r.json: not a tuning record"),
    ],
)
def test_a_record_that_cannot_be_read_is_an_error(cli, graph, tmp_path, record, said):
    if record is not None:
        (tmp_path / "r.json").write_text(record)
    ran = cli("schedule", graph, "--record", "r.json", "-o", "p.json")
    assert ran.code == 2
    assert said in ran.err
    assert not (tmp_path / "p.json").exists()


def test_a_read_only_record_is_an_error_before_anything_is_measured(cli, graph, tmp_path, monkeypatch):
    monkeypatch.setattr(measure.Bench, "__call__", nothing_is_measured)
    (tmp_path / "r.json").write_text('{"kind": "tuning", "format": 1, "entries": []}')
    (tmp_path / "r.json").chmod(0o444)
    ran = cli("schedule", graph, "--profile", "--record", "r.json", "-o", "p.json")
    assert ran.code == 1
    assert "error: r.json: the tuning record is read-only\n  Copy it and name the copy with --record." in ran.err
    assert sorted(path.name for path in tmp_path.glob("*")) == ["g.json", "model.onnx", "r.json", "run.json"]


@pytest.mark.parametrize("device", ["a100", "avx2"])
def test_only_this_machine_is_profiled(cli, graph, device):
    ran = cli("schedule", graph, "--device", device, "--profile", "-o", "p.json")
    assert ran.code == 6
    assert f"error: {device} cannot be profiled here: " in ran.err
    assert "--device host" in ran.err


def test_without_a_compiler_nothing_is_written(graph, tmp_path):
    before = sorted(tmp_path.iterdir())
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "tvm.py").write_text("raise ImportError('none here', name='tvm')")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path / "none"), *sys.path])}
    command = [sys.executable, "-m", "tilec", "schedule", "g.json", "--profile", "--budget", "2", "-o", "p.json"]
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert ran.returncode == 6
    assert "error: TVM, which compiles for host, cannot be imported: none here" in ran.stderr
    assert sorted(tmp_path.iterdir()) == sorted([*before, tmp_path / "none"])


def test_symbolic_sizes_are_not_measured(cli, tmp_path):
    attention_like(tmp_path / "model.onnx", "rows")
    cli("import", "model.onnx", "-o", "g.json")
    ran = cli("schedule", "g.json", "--profile", "-o", "p.json")
    assert ran.code == 5
    assert "only fixed sizes can be measured\n  Bind them: --shape rows=SIZE." in ran.err


def test_times_do_not_serve_another_objective(cli, graph, monkeypatch):
    monkeypatch.setenv("TILEC_SCHEDULE_OBJECTIVE", "traffic")
    ran = cli("schedule", graph, "--profile", "-o", "p.json")
    assert ran.code == 2
    assert "tuning records hold times, the objective is traffic" in ran.err


def test_every_flag_has_a_key(cli, graph, tmp_path, monkeypatch):
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "r.yaml").write_text("schedule: {profile: true, record: mine.json, budget: 7}\n")
    ran = cli("schedule", graph, "--recipe", "r/r.yaml", "--print-recipe")
    assert "  budget: 7  # r/r.yaml:1:54\n" in ran.out
    assert '  record: "r/mine.json"  # r/r.yaml:1:35\n' in ran.out
    monkeypatch.setenv("TILEC_SCHEDULE_RECORD", "theirs.json")
    flags = ("--recipe", "r/r.yaml", "--budget", 9, "--profile", "--print-recipe")
    ran = cli("schedule", graph, *flags)
    assert "  budget: 9  # --budget\n" in ran.out
    assert '  record: "theirs.json"  # TILEC_SCHEDULE_RECORD\n' in ran.out
    assert "  profile: true  # --profile\n" in ran.out
    assert cli("compile", "model.onnx", *flags, "--record", "f.json").out.count("# --record") == 1


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_what_was_measured_and_leaves_nothing_else(graph, tmp_path, number):
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(temporary)}
    environment["TILEC_SCHEDULE_FUSION"] = "none"  # there is more than one group
    arguments = ["schedule", "g.json", "--profile", "--record", "r.json", "--budget", "3", "-o", "p.json"]
    command = [sys.executable, "-m", "tilec", *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stderr=pipe, text=True, start_new_session=True
    ) as running:
        assert running.stderr is not None
        line = running.stderr.readline()
        while line and not line.startswith("group "):
            line = running.stderr.readline()
        time.sleep(0.3)
        os.killpg(running.pid, number)  # as a terminal does
        rest = running.stderr.read()
        assert running.wait(timeout=30) == 128 + number, rest
    assert "Traceback" not in rest
    assert len(parse_record((tmp_path / "r.json").read_text(), "").entries) >= 1
    assert list(temporary.iterdir()) == []
    assert {path.name for path in tmp_path.iterdir()} == {"g.json", "model.onnx", "r.json", "run.json", "tmp"}
    assert [line for line in processes() if str(temporary) in line] == []


def processes() -> list[str]:
    """The environments of all processes."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            found.append(path.read_bytes().decode(errors="replace"))
        except OSError:
            continue
    return found
