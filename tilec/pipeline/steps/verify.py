"""The stage `verify`: compiled code, or tile programs, against the model."""

from collections.abc import Mapping
from pathlib import Path

from tilec.artifact import Artifact, bring_files, digest_file, digest_object, require_files
from tilec.errors import ArtifactError, UsageError, VerificationMismatch
from tilec.pipeline.host_match import host_mismatch
from tilec.pipeline.job import FILES, Job, StageInput, StageOutput, read_source
from tilec.pipeline.steps.codegen import require_code
from tilec.pipeline.steps.sources import carried, moved_files, refuse_illegal
from tilec.progress import Advance


def report_inputs(job: Job, source: StageInput) -> dict[str, str]:
    """Digests that decide whether a report is fresh.

    Raises ArtifactError when the code, the plan beside it, or --model, is another one.
    """
    plan = _plan_beside(source)
    assert source.artifact is not None
    require_code(source.artifact, source.folder, moved=job.model is not None)
    if job.model is not None:
        model_file(job, source, plan.body.get("files", {}))
    return {
        **carried(source, "model", "device"),
        "kernels": digest_object(source.body),
        "plan": digest_object(plan.body),
        "recipe": job.recipe.digest("verify"),
        **_inputs_digest(job),
    }


def _inputs_digest(job: Job) -> dict[str, str]:
    """The digest of the inputs that the recipe names. Raises UsageError when they are not there."""
    file = job.recipe.verify.inputs
    if file is None:
        return {}
    if not Path(file).is_file():
        raise UsageError("no such file", file, "`verify.inputs` in the recipe, or --inputs, names it.")
    return {"inputs": digest_file(Path(file))}


def _plan_beside(source: StageInput) -> StageInput:
    """The plan that kernels were made from, beside them. Raises ArtifactError when it is another one."""
    assert source.artifact is not None
    plan = read_source("plan", source.folder / FILES["plan"])
    source.artifact.require_inputs({"plan": digest_object(plan.body)}, source.place)
    return plan


def verify_kernels(job: Job, source: StageInput, _target: Path, advance: Advance) -> StageOutput:
    """Compare compiled code with the model; a mismatch is raised after the report is written."""
    from tilec.importer.upgrade_opset import modern_file
    from tilec.ir.codec import plan_from_json
    from tilec.ir.verify.plan import check_plan
    from tilec.verify.remote import RemoteError
    from tilec.verify.stage import verify

    assert source.artifact is not None
    beside = _plan_beside(source)
    plan = plan_from_json(beside.body, beside.place)
    refuse_illegal("plan", check_plan(plan), beside)
    model = model_file(job, source, plan.files)
    bring_files(plan.files, source.folder, source.folder, moved_files(job, source, plan.files))
    because = host_mismatch(job.device) if job.device else None
    try:
        with modern_file(model) as read:
            outcome = verify(source.folder, plan, source.body, read, job.recipe.verify, advance, because)
    except RemoteError:
        # A process that maps files ends when one is overwritten in place: then that is the error.
        model_file(job, source, plan.files)
        require_files(plan.files, source.folder)
        raise
    failure = None
    if outcome.failure is not None:
        failure = VerificationMismatch(outcome.failure, str(source.folder), outcome.hint)
    return StageOutput(outcome.report, run=outcome.run, failure=failure)


def passed(artifact: Artifact, _folder: Path) -> bool:
    """Whether a report says that the model is right."""
    return artifact.body.get("verdict") == "pass"


def model_file(job: Job, source: StageInput, files: Mapping[str, str]) -> Path:
    """The model that an artifact was made from, at its real place so that its external data is found.

    Raises ArtifactError when it is missing or another one.
    """
    assert source.artifact is not None
    sha256 = source.artifact.inputs.get("model")
    name = next((name for name, digest in files.items() if digest == sha256), None)
    if name is None or sha256 is None:
        raise ArtifactError("it does not say which model it was made from", source.place, "Run `tilec import` again.")
    path = (job.model or source.folder / name).resolve()
    if not path.is_file():
        raise ArtifactError(f"the model {name} is not here", str(source.folder), "Name it with --model PATH.")
    if digest_file(path) != sha256:
        raise ArtifactError(
            f"{path.name} is not the model that this was made from",
            str(source.folder),
            "Compile it again, or name the original with --model PATH.",
        )
    return path
