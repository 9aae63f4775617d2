"""Reducing a compiled model that is wrong, with the stages bound to it; what is left becomes a folder to compile."""

import tempfile
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilec.errors import ArtifactError
from tilec.pipeline.host_match import host_mismatch
from tilec.pipeline.job import Job, StageInput, read_source
from tilec.pipeline.part_folder import command_of, write_part_folder
from tilec.pipeline.stages import compile_model
from tilec.pipeline.steps.verify import model_file
from tilec.progress import Advance, unseen

if TYPE_CHECKING:
    from tilec.ir.plan import Plan
    from tilec.verify.reduce import Reduced, Say


class _Silent:
    """A listener that says nothing."""

    def stage(self, name: str) -> nullcontext[Advance]:
        """The stage runs unheard."""
        del name
        return nullcontext(unseen)

    def skipped(self, stage: str) -> None:
        """Of no interest."""

    def step(self, text: str) -> None:
        """Of no interest."""

    def note(self, text: str) -> None:
        """Of no interest."""


@dataclass(frozen=True)
class Reproduction:
    """A reduced model that was written: the command line that shows the failure, and what was reduced."""

    command: str
    reduced: "Reduced"


def reduce_model(job: Job, source: StageInput, device_text: str, output: Path, say: "Say") -> Reproduction:
    """Reduce the compiled model of `source` (its kernels) and write the rest to the folder `output`.

    `job` compiles as the model was compiled. Raises TilecError when nothing fails or a stage cannot run.
    """
    from tilec.importer.upgrade_opset import modern_file
    from tilec.ir.codec import plan_from_json
    from tilec.verify.reduce import Case, reduce

    assert job.device is not None
    because = host_mismatch(job.device)
    if because is not None or "runtime" not in source.body:
        hint = "`tilec verify --per-group` names the group that is wrong on the tile machine."
        raise ArtifactError(f"only what runs here can be reduced: {because or 'there is no code'}", source.place, hint)
    beside = read_source("plan", source.folder)
    plan = plan_from_json(beside.body, beside.place)
    newer = modern_file(model_file(job, source, plan.files))
    with tempfile.TemporaryDirectory(prefix="tilec-") as scratch, newer as model:
        case = Case(
            source.folder,
            plan,
            model,
            lambda model, folder: _built(job, model, folder),
            source.body,
            Path(scratch),
        )
        reduced = reduce(case, job.recipe.verify, say)
        shown = reduced.failure.text.splitlines()[0]
        about = (f"{len(reduced.part.proto.graph.node)} of {reduced.nodes} nodes: {shown}", command_of(output))
        write_part_folder(reduced.part, about, job.recipe, device_text, output)
    return Reproduction(command_of(output), reduced)


def _built(job: Job, model: Path, folder: Path) -> "tuple[Plan, Mapping[str, Any]]":
    """A part of the model compiled like the whole; its sizes are those of its inputs."""
    from tilec.ir.codec import plan_from_json

    schedule = job.recipe.schedule.model_copy(update={"bounds": False, "profile": False})
    quick = replace(job, recipe=job.recipe.model_copy(update={"schedule": schedule}), listener=_Silent(), model=None)
    done = compile_model(replace(quick, shapes={}, asked=frozenset()), model, folder, last="codegen")
    return plan_from_json(done["schedule"].body), done["codegen"].body
