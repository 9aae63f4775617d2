"""Compilation of a model in memory into a temporary folder, and loading."""

from __future__ import annotations

import os
import tempfile
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import onnx

from tilec.artifact import cache_folder
from tilec.ir.codec import plan_from_json
from tilec.ir.graph import Placement
from tilec.pipeline import Job, compile_model
from tilec.progress import Advance, unseen
from tilec.runtime import Session, load
from tilec.spec.effective import Effective, effective_recipe


@dataclass(frozen=True)
class Compiled:
    """A loaded model, the placement of its nodes, and its temporary folder."""

    session: Session
    placement: Placement
    folder: tempfile.TemporaryDirectory[str]


def compiled(model: onnx.ModelProto, strict: bool) -> Compiled:
    """Compile a model for this machine, unverified; object files are shared with the command line's cache.

    With `strict` no node may fall back. Raises TilecError, after which no files remain.
    """
    effective = _host()
    recipe = effective.recipe.model_copy(update={"fallback": "refuse"} if strict else {})
    job = Job(recipe, _Quiet(), effective.device, cache=cache_folder() / "objects")
    folder = tempfile.TemporaryDirectory(prefix="tilec-")
    try:
        file = Path(folder.name) / "model.onnx"
        file.write_bytes(model.SerializeToString())
        build = Path(folder.name) / "build"
        done = compile_model(job, file, build, last="codegen")
        placement = plan_from_json(done["schedule"].body).placement
        return Compiled(load(build), placement, folder)
    except BaseException:
        folder.cleanup()
        raise


@cache
def _host() -> Effective:
    """The default recipe and this machine, with the environment variables applied."""
    return effective_recipe(None, {}, os.environ)


class _Quiet:
    """A listener of the stages that prints nothing."""

    def stage(self, _name: str) -> AbstractContextManager[Advance]:
        return nullcontext(unseen)

    def skipped(self, _stage: str) -> None:
        return

    def step(self, _text: str) -> None:
        return

    def note(self, _text: str) -> None:
        return
