"""Trial of a part of a model: compile it, run it, compare it with onnxruntime, and describe the failure."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from onnx import ModelProto

from tilec.errors import TilecError, UnavailableError
from tilec.ir.plan import Plan
from tilec.verify.compare import compare
from tilec.verify.inputs import Array
from tilec.verify.remote import Remote, RemoteError
from tilec.verify.runners import Compiled, Reference, write_watched
from tilec.verify.submodels import Part, write_part
from tilec.verify.tolerance import tolerances

Build = Callable[[Path, Path], Plan]
"""Compiles a model into a folder and returns its plan. Raises TilecError."""

LIMIT = 120.0
"""Seconds after which a run counts as hanging."""

MISMATCH = "mismatch"
CRASH = "crash"


@dataclass(frozen=True, slots=True)
class Failure:
    """`kind` is mismatch, crash, or the class of a compiler error; `text` is the message."""

    kind: str
    text: str


class Judge:
    """onnxruntime in a process of its own, for one model after another."""

    def run(self, model: Path, feeds: Mapping[str, Array]) -> dict[str, Any]:
        """Outputs by name. Raises TilecError."""
        return Reference(model).run(feeds)


class Subject:
    """Compiled models, one after another, in a process whose standard error is discarded: a crash writes to it."""

    def __init__(self) -> None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)

    def run(self, folder: Path, feeds: Mapping[str, Array]) -> dict[str, Any]:
        """Outputs by name."""
        return Compiled(folder).run(feeds)


@dataclass
class Bench:
    """Runs trials in long-lived processes that are started again after a crash. Use it as a context.

    `tolerance` overrides the tolerances derived from types; `trials` counts compiled parts.
    """

    folder: Path
    build: Build
    tolerance: float | None = None
    trials: int = 0
    _processes: dict[type, Remote] = field(default_factory=dict)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes.values():
            process.close()

    def failure(self, part: Part) -> Failure | None:
        """The failure of a part; None if it passes, or if onnxruntime cannot run it."""
        work = self.folder / "trial"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        model = work / "model.onnx"
        write_part(part, model)
        try:
            expected = self.call(Judge, "onnxruntime", model, part.feeds)
        except UnavailableError:
            raise
        except TilecError:
            return None
        self.trials += 1
        try:
            plan = self.build(model, work / "build")
        except TilecError as error:
            return Failure(type(error).__name__, str(error))
        return self.compared(plan, work / "build", part.feeds, expected)

    def compared(
        self, plan: Plan, folder: Path, feeds: Mapping[str, Array], expected: Mapping[str, Any]
    ) -> Failure | None:
        """The failure of the compiled model in a folder; None if its outputs are within tolerance."""
        try:
            actual = self.call(Subject, "the compiled model", folder, feeds)
        except RemoteError as error:
            return Failure(CRASH, error.message)
        except TilecError as error:
            return Failure(type(error).__name__, str(error))
        allowed = tolerances(plan)
        if self.tolerance is not None:
            allowed = dict.fromkeys(allowed, self.tolerance)
        wrong = [compare(name, actual[name], expected[name], allowed[name]) for name in allowed if name in expected]
        worst = max((each for each in wrong if not each.passed), key=lambda each: each.error, default=None)
        return Failure(MISMATCH, f"{worst.output}: {worst.reason}{worst.size()}") if worst is not None else None

    def call(self, kind: type, name: str, path: Path, feeds: Mapping[str, Array]) -> dict[str, Any]:
        """The outputs of a `kind` in its process. Raises TilecError, RemoteError when the process died or hangs."""
        process = self._processes.pop(kind, None)
        if process is None:
            process = Remote(name, kind)
            process.ready()
        try:
            outputs: dict[str, Any] = process.call("run", path, dict(feeds), timeout=LIMIT)
        except BaseException:
            process.close()  # it has ended, or hangs
            raise
        self._processes[kind] = process
        return outputs


class Trace:
    """Values of a model's tensors for given inputs, computed on demand by onnxruntime in a process of its own."""

    def __init__(self, model: Path, proto: ModelProto, feeds: Mapping[str, Array], folder: Path) -> None:
        produced = [name for node in proto.graph.node for name in node.output if name]
        folder.mkdir(parents=True)
        self._model = write_watched(model, proto, produced, folder)
        self._feeds = feeds
        self._known = dict(feeds)
        self._process: Remote | None = None

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.close()
            self._process = None

    def __call__(self, names: Sequence[str]) -> dict[str, Any]:
        """The values of these tensors. Raises TilecError when onnxruntime cannot compute them."""
        missing = [name for name in names if name not in self._known]
        if missing:
            self._known |= self._run(missing)
        return {name: self._known[name] for name in names}

    def _run(self, names: Sequence[str]) -> dict[str, Any]:
        if self._process is None:
            self._process = Remote("onnxruntime", Reference, self._model)
            self._process.ready()
        try:
            values: dict[str, Any] = self._process.call("chosen", self._feeds, names)
        except BaseException:
            self.close()  # it has ended
            raise
        return values
