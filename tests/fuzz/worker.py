"""Compiles, verifies and runs models in a process of its own, whose death is a result like any other."""

from __future__ import annotations

import multiprocessing
import shutil
import tempfile
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from fuzz.reference import Array

LIMIT = 120.0
"""Seconds that a model of a few nodes may take before it counts as hanging."""


@dataclass(frozen=True)
class Outcome:
    """What became of a model: its outputs, or the kind of failure and what there is to say about it."""

    outputs: dict[str, Array] = field(default_factory=dict)
    failure: str = ""
    detail: str = ""


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
        self._process = context.Process(target=_serve, args=(theirs, self._cache), daemon=True)
        self._process.start()
        theirs.close()

    def run(self, model: bytes, feeds: Mapping[str, Array]) -> Outcome:
        """Compile and run; never raises for what the model does."""
        try:
            self._pipe.send((model, dict(feeds)))
            outcome = self._pipe.recv() if self._pipe.poll(LIMIT) else Outcome(failure="hang", detail=f"{LIMIT} s")
        except (EOFError, ConnectionError):
            self._process.join()
            outcome = Outcome(failure="death", detail=f"exit code {self._process.exitcode}")
        if outcome.failure in ("hang", "death"):
            self._process.kill()
            self._process.join()
            self._start()
        assert isinstance(outcome, Outcome)
        return outcome


def _serve(pipe: Connection, cache: str) -> None:
    """The process: models come in, outcomes go out."""
    while True:
        try:
            model, feeds = pipe.recv()
        except EOFError:
            return
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            path = Path(folder) / "model.onnx"
            path.write_bytes(model)
            try:
                outcome = Outcome(_compile_and_run(path, feeds, Path(cache) / "objects"))
            except BaseException as error:
                trace = traceback.format_exc()
                outcome = Outcome(failure=type(error).__name__, detail=f"{error}\n{trace}")
        pipe.send(outcome)


def _compile_and_run(path: Path, feeds: Mapping[str, Array], cache: Path) -> dict[str, Any]:
    """The outputs of a model that `tilec compile` passes. Raises what it raises, VerificationMismatch as well."""
    from acceptance.building import Quiet, host
    from verify.here import in_this_process

    from tilec.pipeline import Job, compile_model
    from tilec.runtime import load

    job = Job(host().recipe, Quiet(), host().device, cache=cache, device_text=host().device_source.text)
    folder = path.with_suffix(".tilec")
    with in_this_process():
        compile_model(job, path, folder)
    return dict(load(folder).run(feeds))
