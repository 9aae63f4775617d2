"""Trial of a part of a model: compile it, run it, judge it as verify does, and describe the failure."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from onnx import ModelProto

from tilec.errors import TilecError, UnavailableError
from tilec.ir.call_segments import outside_calls
from tilec.ir.plan import Plan
from tilec.verify.groups import GroupCheck
from tilec.verify.inputs import Array
from tilec.verify.locate import Divergence
from tilec.verify.look_budget import LookTooLong
from tilec.verify.remote import Remote, RemoteError
from tilec.verify.runners import Compiled, Reference, write_watched
from tilec.verify.step_checks import Stale, affordable
from tilec.verify.submodels import Part, write_part
from tilec.verify.tolerance import tolerances
from tilec.verify.verdict import Subject, judged_outputs

Kernels = Mapping[str, Any]
"""The data of a 3-kernels.json."""

Build = Callable[[Path, Path], tuple[Plan, Kernels]]
"""Compiles a model into a folder and returns its plan and kernels. Raises TilecError."""

LIMIT = 120.0
"""Seconds after which a run counts as hanging."""

MISMATCH = "mismatch"
WRONG_GROUP = "wrong group"
CRASH = "crash"


@dataclass(frozen=True, slots=True)
class Failure:
    """`kind` is mismatch (of an output), wrong group (though every output is right), crash, or the class of a compiler
    error; `text` is the message, `divergence` the group at fault where it is known."""

    kind: str
    text: str
    divergence: Divergence | None = None


class Judge:
    """onnxruntime in a process of its own, for one model after another."""

    def run(self, model: Path, feeds: Mapping[str, Array]) -> dict[str, Any]:
        """Outputs by name. Raises TilecError."""
        return Reference(model).run(feeds)


class Trials:
    """Compiled models, one after another, in a process whose standard error is discarded: a crash writes to it."""

    def __init__(self) -> None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        self._compiled: Compiled | None = None

    def run(self, folder: Path, feeds: Mapping[str, Array]) -> dict[str, Any]:
        """Outputs by name of the model in a folder, which stays open."""
        self._compiled = Compiled(folder)
        return self._compiled.run(feeds)

    def check_groups(self, *arguments: Any) -> tuple[list[GroupCheck], Stale | None]:
        """`Compiled.check_groups` of the open model."""
        assert self._compiled is not None
        return self._compiled.check_groups(*arguments)


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
            plan, kernels = self.build(model, work / "build")
        except TilecError as error:
            return Failure(type(error).__name__, str(error))
        return self.judged(model, plan, kernels, work / "build", part.feeds, expected)

    def judged(
        self,
        model: Path,
        plan: Plan,
        kernels: Kernels,
        folder: Path,
        feeds: Mapping[str, Array],
        expected: Mapping[str, Any],
    ) -> Failure | None:
        """The failure of the `model` compiled in a folder; None if verify passes it on these inputs."""
        try:
            actual = self.call(Trials, "the compiled model", folder, feeds)
            subject = Subject(folder, plan, kernels, model, self._processes[Trials])
            allowed = {name: tolerance for name, tolerance in tolerances(plan).items() if name in expected}
            if self.tolerance is not None:
                allowed = dict.fromkeys(allowed, self.tolerance)
            explicit = self.tolerance is not None
            try:
                compared, divergence = judged_outputs(subject, feeds, actual, expected, allowed, explicit)
            except LookTooLong:
                return None
            worst = max((each for each in compared if not each.passed), key=lambda each: each.error, default=None)
            if worst is not None:
                return Failure(MISMATCH, f"{worst.output}: {worst.reason}{worst.size()}", divergence)
            divergence = divergence or _diverging(subject, feeds)
            return Failure(WRONG_GROUP, divergence.sentence(), divergence) if divergence is not None else None
        except RemoteError as error:
            return Failure(CRASH, error.message)
        except TilecError as error:
            return Failure(type(error).__name__, str(error))

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


def _diverging(subject: Subject, feeds: Mapping[str, Array]) -> Divergence | None:
    """The first of the groups that one verification can afford which is wrong on special values or on these inputs."""
    (names,) = affordable([(subject.plan, subject.kernels)])
    for special in (False,) if outside_calls(subject.plan.calls) else (True, False):  # onnxruntime may refuse NaN
        try:
            checks, stale = subject.process.call("check_groups", subject.plan, subject.kernels, feeds, names, special)
        except UnavailableError:
            return None
        wrong = next((check for check in checks if not check.passed), None)
        if wrong is not None:
            return Divergence.kernel(wrong)
        if stale is not None:
            return Divergence.memory(stale)
    return None


class Trace:
    """Values of a model's tensors for given inputs, computed on demand by onnxruntime in a process of its own."""

    def __init__(self, model: Path, proto: ModelProto, feeds: Mapping[str, Array], folder: Path) -> None:
        produced = [name for node in proto.graph.node for name in node.output if name]
        folder.mkdir(parents=True)
        self._model, self._data = write_watched(model, proto, produced, folder), model.parent
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
            self._process = Remote("onnxruntime", Reference, self._model, None, self._data)
            self._process.ready()
        try:
            values: dict[str, Any] = self._process.call("chosen", self._feeds, names)
        except BaseException:
            self.close()  # it has ended
            raise
        return values
