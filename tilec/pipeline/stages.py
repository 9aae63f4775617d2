"""The four stages as one list, and how they are run: a stage whose inputs have not changed is skipped."""

from contextlib import suppress
from pathlib import Path

from tilec.artifact import Artifact, atomic_open, bring_files, is_fresh, read_artifact, touch
from tilec.errors import UsageError, did_you_mean
from tilec.pipeline import steps
from tilec.pipeline.job import Job, Made, Source, Stage, read_source

STAGES = (
    Stage("import", "model", "graph", steps.graph_inputs, steps.import_graph, steps.files_unchanged),
    Stage("schedule", "graph", "plan", steps.plan_inputs, steps.schedule_graph),
    Stage("codegen", "plan", "kernels", steps.kernels_inputs, steps.generate_kernels, steps.named_files_there),
    Stage("verify", "kernels", "report", steps.report_inputs, steps.verify_kernels, steps.passed),
)


def stage_named(name: str) -> Stage:
    """The stage that is called `name`. Raises UsageError that names the nearest."""
    for stage in STAGES:
        if stage.name == name:
            return stage
    near = did_you_mean(name, [stage.name for stage in STAGES])
    hint = f"Did you mean {near!r}?" if near else f"Stages are {', '.join(stage.name for stage in STAGES)}."
    raise UsageError(f"no stage is called {name!r}", hint=hint)


def run_stage(stage: Stage, job: Job, source: Source, target: Path | None) -> Artifact:
    """Run one stage unless `target` is fresh, and write its artifact there (None: the caller writes it).

    Raises TilecError; nothing half-written stays.
    """
    inputs = stage.inputs(job, source)
    if target is not None and is_fresh(target, stage.writes, inputs):
        found = read_artifact(target, stage.writes)
        if stage.intact(found, target.parent):
            touch(target)
            job.listener.skipped(stage.name)
            return found
    with job.listener.stage(stage.name) as advance:
        made = stage.run(job, source, target or Path(), advance)
        edited = source.artifact is not None and source.artifact.edited
        artifact = Artifact(stage.writes, inputs, made.body, edited)
        _write(made, artifact, target)
    if target is not None and stage.writes in ("graph", "plan"):
        _keep_weights(artifact, source, target)
    if made.failure is not None:
        raise made.failure
    return artifact


def compile_model(
    job: Job, model: Path, folder: Path, first: str = "import", last: str = "verify"
) -> dict[str, Source]:
    """Run the stages from `first` to `last` in `folder`; returns what each wrote, by stage.

    Raises UsageError when the range is empty and whatever a stage raises.
    """
    begin, end = (STAGES.index(stage_named(name)) for name in (first, last))
    if begin > end:
        raise UsageError(f"stage {first} comes after {last}", hint="Exchange --from and --to.")
    source = Source(model) if begin == 0 else read_source(STAGES[begin].reads, folder)
    if first == "schedule":
        source = steps.bound(job, source)
    elif begin > 1 and job.asked:
        raise UsageError("sizes are bound at import or schedule", f"--from {first}", "Leave --shape out.")
    done = {}
    for stage in STAGES[begin : end + 1]:
        target = folder / stage.file
        source = done[stage.name] = Source(target, run_stage(stage, job, source, target))
    return done


def _write(made: Made, artifact: Artifact, target: Path | None) -> None:
    """Write what a stage made, the artifact last; new files go again when that fails."""
    folder = target.parent if target is not None else Path()
    new: list[Path] = []
    made_here = not folder.exists()
    try:
        for name, pieces in made.files.items():
            path = folder / name
            if not path.exists():
                new.append(path)
            with atomic_open(path) as file:
                file.writelines(pieces)
        if target is not None:
            artifact.write(target)
    except BaseException:
        for path in new:
            with suppress(OSError):
                path.unlink()
        if made_here:
            with suppress(OSError):
                folder.rmdir()
        raise


def _keep_weights(artifact: Artifact, source: Source, target: Path) -> None:
    """Make weight files reachable beside the artifact. Those that are not here are codegen's to miss."""
    files = {name: digest for name, digest in artifact.body["files"].items() if (source.folder / name).is_file()}
    if not source.folder.samefile(target.parent):
        bring_files(files, source.folder, target.parent)
