"""Data of the pipeline: the job that all stages share, the input of a stage and its output."""

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tilec.artifact import Artifact, parse_artifact, read_artifact
from tilec.errors import ArtifactError, TilecError
from tilec.progress import Advance

if TYPE_CHECKING:
    from tilec.calls_ahead import CallsAhead
    from tilec.ir.sizes import SymbolRange
    from tilec.spec.device import DeviceSpec
    from tilec.spec.recipe import CompileRecipe

FILES = {"graph": "1-graph.json", "plan": "2-plan.json", "kernels": "3-kernels.json", "report": "4-report.json"}
"""Kind of artifact -> its file in an output folder."""

DEVICE_FILE = "device.yaml"
"""The device that was measured, or read from a file, for the artifacts beside it."""

RECIPE_FILE = "recipe.yaml"
"""The part of the recipe that decided the plan beside it."""

COPIED = "# Written by `tilec schedule` for the plan beside it.\n"
"""First line of a device or recipe beside a plan; a file without it belongs to the user and is not replaced."""

RUN_FILE = "run.json"
"""File of facts that differ between two runs of the same compilation: errors, times, machine, versions."""

_KINDS: Mapping[str, type] = {
    "calls": list,
    "constants": dict,
    "device": str,
    "files": dict,
    "name": str,
    "placement": dict,
    "programs": dict,
    "runtime": dict,
    "steps": list,
    "symbols": list,
}
"""Top-level keys that are looked at before an artifact is decoded, and of what kind they are."""

_KIND_NAMES: Mapping[type, str] = {list: "list", dict: "object", str: "text"}


class Listener(Protocol):
    """Hears which stage runs, and what it has to say."""

    def stage(self, name: str) -> AbstractContextManager[Advance]:
        """The context in which a stage runs."""

    def skipped(self, stage: str) -> None:
        """A stage was fresh."""

    def step(self, text: str) -> None:
        """A step of a long stage is done; of no interest beside a progress bar."""

    def note(self, text: str) -> None:
        """Something that whoever asked for the stage should know."""


@dataclass(frozen=True)
class Job:
    """The request that the stages of one compilation share.

    `device` is None where no stage asks for it. `shapes` binds symbols, `ranges` limits others; those in `asked` (named
    by a flag) must exist. `model` tells where the model file is when it is not beside the artifacts; `cache` keeps
    object files; `device_text` is the file of a device that does not come with tilec, to be written beside the plan;
    `workers` build candidates that are measured (`tilec.pipeline.workers`); kernels are compiled `ahead` of code
    generation.
    """

    recipe: "CompileRecipe"
    listener: Listener
    device: "DeviceSpec | None" = None
    shapes: Mapping[str, int] = field(default_factory=dict)
    ranges: "Mapping[str, SymbolRange]" = field(default_factory=dict)
    asked: frozenset[str] = frozenset()
    model: Path | None = None
    cache: Path | None = None
    device_text: str | None = None
    workers: str | None = None
    ahead: "CallsAhead | None" = None


@dataclass(frozen=True)
class StageInput:
    """The input of a stage: a file and, unless it is a model, the artifact in it. Weights are named from `folder`."""

    path: Path
    artifact: Artifact | None = None

    @property
    def folder(self) -> Path:
        """The folder of the files that the artifact names; the current one for standard input."""
        return self.path.parent

    @property
    def place(self) -> str:
        """The file's name for messages."""
        return str(self.path)

    @property
    def body(self) -> Mapping[str, Any]:
        """The artifact's data; nothing for a model."""
        return self.artifact.body if self.artifact else {}


@dataclass(frozen=True)
class StageOutput:
    """The output of a stage: the artifact's data, files to write before it, digests of inputs that the stage itself
    changed, what run.json is to tell, and a failure to raise after it."""

    body: Mapping[str, Any]
    files: Mapping[str, Iterable[bytes | memoryview]] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)
    run: Mapping[str, Any] | None = None
    failure: TilecError | None = None


@dataclass(frozen=True)
class Stage:
    """A step of the pipeline.

    `name` on the command line, the kinds of what it `reads` and `writes`; `inputs` gives the digests that decide
    whether it is fresh, `intact` whether the files that its artifact names are still there, `run` does the work
    for an output path, `owned` names the files that it wrote for an artifact; a stage that is `watched` runs though it
    is fresh.
    """

    name: str
    reads: str
    writes: str
    inputs: Callable[[Job, StageInput], dict[str, str]]
    run: Callable[[Job, StageInput, Path, Advance], StageOutput]
    intact: Callable[[Artifact, Path], bool] = lambda _artifact, _folder: True
    owned: Callable[[Artifact], frozenset[str]] = lambda _artifact: frozenset()
    watched: Callable[[Job], bool] = lambda _job: False

    @property
    def file(self) -> str:
        """The name of its artifact in an output folder."""
        return FILES[self.writes]


def read_source(kind: str, path: Path) -> StageInput:
    """The input of a stage: the artifact of this kind in a file, in a folder of artifacts, or on standard input (`-`).

    Raises UsageError and ArtifactError as `read_artifact` does.
    """
    if kind == "model":
        return StageInput(path)
    if str(path) == "-":
        return StageInput(path, _of_kinds(parse_artifact(sys.stdin.read(), kind, "standard input"), "standard input"))
    if path.is_dir():
        path /= FILES[kind]
    return StageInput(path, _of_kinds(read_artifact(path, kind), str(path)))


def _of_kinds(artifact: Artifact, place: str) -> Artifact:
    """The artifact as it is. Raises ArtifactError for a top-level key of the wrong kind."""
    for key, kind in _KINDS.items():
        if key in artifact.body and not isinstance(artifact.body[key], kind):
            raise ArtifactError(
                f"{key!r} is no {_KIND_NAMES[kind]}", place, "Undo the edit, or make the artifact anew."
            )
    return artifact


def read_run(folder: Path) -> dict[str, Any]:
    """The content of run.json beside the artifacts; empty when there is none."""
    try:
        record = json.loads((folder / RUN_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}
