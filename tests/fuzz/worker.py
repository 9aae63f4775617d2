"""Compiles, verifies and runs models in a process of its own, whose death is a result like any other."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import tempfile
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from fuzz.reference import Array

LIMIT = 120.0
"""Seconds of a processor that a model of a few nodes may take before it counts as hanging."""

PATIENCE = 15
"""How many times as long a model may wait for processors that others use."""


@dataclass(frozen=True)
class Outcome:
    """What became of a model: its outputs for each of the inputs, or why these are refused; else the kind of failure
    and what there is to say about it."""

    each: Sequence[dict[str, Array] | str] = ()
    failure: str = ""
    detail: str = ""

    @property
    def outputs(self) -> dict[str, Array]:
        """The outputs of a model that ran once."""
        (only,) = self.each
        assert not isinstance(only, str)
        return only


class Worker:
    """A process that compiles for this machine and runs; a new one starts after a death."""

    def __init__(self) -> None:
        self._cache = tempfile.mkdtemp(prefix="tilec-fuzz-")
        self._start()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.join()
        shutil.rmtree(self._cache, ignore_errors=True)

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self._cache))
        self._process.start()
        theirs.close()

    def _answers(self) -> bool:
        """Whether an answer comes within the limits."""
        begin, used = time.monotonic(), _seconds(self._process.pid)
        while not self._pipe.poll(2.0):
            late = time.monotonic() - begin > LIMIT * PATIENCE
            if late or _seconds(self._process.pid) - used > LIMIT:
                return False
        return True

    def run(self, model: bytes, feeds: Mapping[str, Array]) -> Outcome:
        """Compile and run; never raises for what the model does."""
        outcome = self.run_all(model, [feeds])
        refused = [each for each in outcome.each if isinstance(each, str)]
        return Outcome(failure="refused", detail=refused[0]) if refused else outcome

    def run_all(self, model: bytes, tries: Sequence[Mapping[str, Array]]) -> Outcome:
        """Compile once and run on each of some inputs; never raises for what the model does.

        onnxruntime, the reference of verify, ends its process at some models, as at a recurrence over nothing: after a
        death it gets one of its own.
        """
        outcome = self._tried(model, tries, apart=False)
        return self._tried(model, tries, apart=True) if outcome.failure in ("hang", "death") else outcome

    def _tried(self, model: bytes, tries: Sequence[Mapping[str, Array]], apart: bool) -> Outcome:
        try:
            self._pipe.send((model, [dict(feeds) for feeds in tries], apart))
            outcome = self._pipe.recv() if self._answers() else Outcome(failure="hang", detail=f"{LIMIT} s")
        except (EOFError, ConnectionError):
            self._process.join()
            outcome = Outcome(failure="death", detail=f"exit code {self._process.exitcode}")
        if outcome.failure in ("hang", "death"):
            self._process.kill()
            self._process.join()
            self._start()
        assert isinstance(outcome, Outcome)
        return outcome


def _seconds(process: int | None) -> float:
    """What a process has used of processors."""
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _serve(pipe: Connection, cache: str) -> None:
    """The process: models come in, outcomes go out."""
    while True:
        try:
            model, tries, apart = pipe.recv()
        except EOFError:
            return
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            path = Path(folder) / "model.onnx"
            path.write_bytes(model)
            try:
                outcome = Outcome(_compile_and_run(path, tries, Path(cache) / "objects", apart))
            except BaseException as error:
                trace = traceback.format_exc()
                outcome = Outcome(failure=type(error).__name__, detail=f"{error}\n{trace}")
        pipe.send(outcome)


def _compile_and_run(
    path: Path, tries: Sequence[Mapping[str, Array]], cache: Path, apart: bool
) -> list[dict[str, Any] | str]:
    """The outputs of a model that `tilec compile` passes, for each of the inputs. Raises what it raises,
    VerificationMismatch as well."""
    from acceptance.building import Quiet, host
    from verify.here import in_this_process

    from tilec.pipeline import Job, compile_model
    from tilec.runtime import load

    job = Job(host().recipe, Quiet(), host().device, cache=cache, device_text=host().device_source.text)
    folder = path.with_suffix(".tilec")
    with nullcontext() if apart else in_this_process():
        compile_model(job, path, folder)
    session = load(folder)
    return [_run(session, feeds) for feeds in tries]


def _run(session: Any, feeds: Mapping[str, Array]) -> dict[str, Any] | str:
    """The outputs, or why the inputs are refused."""
    from tilec.errors import TilecError

    try:
        return dict(session.run(feeds))
    except TilecError as error:
        return str(error)
