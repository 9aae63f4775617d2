"""Lines about a running stage in a log, and the seconds of stages and steps in a file."""

import json
import time
from contextlib import contextmanager

from cli import models
from tilec.cli.progress_lines import interval, progress_line, progress_lines
from tilec.pipeline.compile_profile import ProfiledListener, profile_to_json


def test_a_line_says_the_step_what_is_done_and_what_is_left() -> None:
    assert progress_line("verify", 0.0, ("", 0, 0, 0.0), 4.2) == "verify: 4 s"
    at = ("local_search", 10, 40, 2.0)
    line = progress_line("schedule", 0.0, at, 12.0)
    assert line == "schedule: local_search, 10 of 40, 12 s, about 30 s left of this step"
    assert progress_line("codegen", 0.0, ("compile", 4, 4, 1.0), 3.0) == "codegen: compile, 3 s"


def test_there_are_lines_as_long_as_a_stage_runs_and_no_longer() -> None:
    lines: list[str] = []
    with progress_lines("schedule", lines.append, 0.01) as advance:
        advance(1, 3, "partition")
        limit = time.monotonic() + 10
        while len(lines) < 2 and time.monotonic() < limit:
            time.sleep(0.005)
    told = len(lines)
    assert told >= 2
    assert all(line.startswith("schedule: partition, 1 of 3, ") for line in lines[1:])
    time.sleep(0.05)
    assert len(lines) == told


def test_any_interval_is_one_that_can_be_waited_for(monkeypatch) -> None:
    for text, seconds in (("7", 7.0), ("0", 0.0), ("-1", 0.0), ("nan", 0.0), ("word", 2.0)):
        monkeypatch.setenv("TILEC_PROGRESS", text)
        assert interval() == seconds
    monkeypatch.setenv("TILEC_PROGRESS", "inf")
    with progress_lines("verify", lambda _line: None, interval()):
        pass


def test_nobody_who_reads_is_no_error() -> None:
    def tell(_line: str) -> None:
        told.append(1)
        raise BrokenPipeError

    told: list[int] = []
    with progress_lines("verify", tell, 0.001):
        time.sleep(0.05)
    assert len(told) == 1


class Silent:
    """A listener that hears nothing."""

    @contextmanager
    def stage(self, _name):
        yield lambda _done, _total, _step="": None

    def skipped(self, _stage): ...

    def step(self, _text): ...

    def note(self, _text): ...


def test_all_time_of_a_stage_is_in_its_steps() -> None:
    listener = ProfiledListener(Silent())
    with listener.stage("schedule") as advance:
        advance(1, 2, "partition")
        advance(2, 2, "partition")
        advance(1, 1, "lower")
    with listener.stage("verify"):
        pass
    made = profile_to_json(listener.spans)
    assert [(span.stage, span.step) for span in listener.spans] == [
        ("schedule", "partition"),
        ("schedule", "lower"),
        ("schedule", "other"),
        ("verify", "other"),
    ]
    schedule = made["stages"]["schedule"]
    assert abs(schedule["seconds"] - sum(step["seconds"] for step in schedule["steps"].values())) < 1e-5
    assert next(event["name"] for event in made["traceEvents"] if event["cat"] == "schedule") == "schedule"


def test_a_profile_of_a_compilation_names_stages_and_steps(cli, tmp_path) -> None:
    models.mlp(tmp_path / "model.onnx")
    ran = cli("compile", "model.onnx", "--profile-compile", "profile.json", "--effort", "quick", "-o", "out")
    assert ran.code == 0, ran.err
    made = json.loads((tmp_path / "profile.json").read_text())
    assert made["stages"].keys() == {"import", "schedule", "codegen", "verify"}
    assert {"check graph", "fuse_registers", "split_parts", "lower", "decide code"} <= made["stages"]["schedule"][
        "steps"
    ].keys()
    assert {"lower", "pack weights", "library"} <= made["stages"]["codegen"]["steps"].keys()
    assert {"reference", "compare outputs"} <= made["stages"]["verify"]["steps"].keys()
    assert all(event["dur"] >= 0 and event["ph"] == "X" for event in made["traceEvents"])
    assert "partition_groups" not in made["stages"]["schedule"]["steps"], "full fusion is not searched for"
