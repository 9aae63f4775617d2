"""The four stages as one list, and how they are run: a stage is skipped while its inputs and the programs that do its
work have not changed."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tilec.artifact import (
    Artifact,
    atomic_open,
    bring_files,
    folder_locked,
    is_fresh,
    read_artifact,
    remove_leftovers,
    touch,
)
from tilec.artifact.filenames import is_inside
from tilec.errors import ArtifactError, UsageError, did_you_mean
from tilec.pipeline.job import FILES, Job, Stage, StageInput, StageOutput, read_source
from tilec.pipeline.other_weights import take_over
from tilec.pipeline.provenance import outdated, write_run
from tilec.pipeline.steps import codegen, import_model, schedule, verify
from tilec.pipeline.tuning import refuse_tuning

STAGES = (
    Stage(
        "import",
        reads="model",
        writes="graph",
        inputs=import_model.graph_inputs,
        run=import_model.import_graph,
        intact=import_model.files_unchanged,
        owned=import_model.written_files,
        watched=lambda job: job.recipe.import_.print_between_passes,
    ),
    Stage(
        "schedule",
        reads="graph",
        writes="plan",
        inputs=schedule.plan_inputs,
        run=schedule.schedule_graph,
        watched=lambda job: job.recipe.schedule.print_between_passes,
    ),
    Stage(
        "codegen",
        reads="plan",
        writes="kernels",
        inputs=codegen.kernels_inputs,
        run=codegen.generate_kernels,
        intact=codegen.named_files_there,
        owned=codegen.code_files,
        watched=lambda job: job.recipe.codegen.print_between_passes,
    ),
    Stage(
        "verify",
        reads="kernels",
        writes="report",
        inputs=verify.report_inputs,
        run=verify.verify_kernels,
        intact=verify.passed,
    ),
)


def stage_named(name: str) -> Stage:
    """The stage that is called `name`. Raises UsageError that names the nearest."""
    for stage in STAGES:
        if stage.name == name:
            return stage
    near = did_you_mean(name, [stage.name for stage in STAGES])
    hint = f"Did you mean {near!r}?" if near else f"Stages are {', '.join(stage.name for stage in STAGES)}."
    raise UsageError(f"no stage is called {name!r}", hint=hint)


def run_stage(stage: Stage, job: Job, source: StageInput, target: Path | None) -> Artifact:
    """Run one stage unless `target` is fresh, and write its artifact there (None: the caller writes it).

    No other process runs a stage in the folder meanwhile. Raises TilecError; nothing half-written stays.
    """
    if target is None:
        return _run_stage(stage, job, source, None)
    with _alone_in(target.parent, job):
        return _run_stage(stage, job, source, target)


@contextmanager
def _alone_in(folder: Path, job: Job) -> Iterator[None]:
    """The one right to write artifacts into a folder, without what killed processes were writing."""
    with folder_locked(folder, lambda: job.listener.note(f"{folder}: another tilec is writing here; waiting")):
        remove_leftovers(folder)
        yield


def _run_stage(stage: Stage, job: Job, source: StageInput, target: Path | None) -> Artifact:
    """Run one stage, see `run_stage`."""
    inputs = stage.inputs(job, source)
    if target is not None and not stage.watched(job) and is_fresh(target, stage.writes, inputs):
        found = read_artifact(target, stage.writes)
        if stage.intact(found, target.parent) and not _outdated(stage, job, target, found):
            touch(target)
            job.listener.skipped(stage.name)
            return found
    before = _written_before(stage, target)
    with job.listener.stage(stage.name) as advance:
        made = stage.run(job, source, target or Path(), advance)
        edited = source.artifact is not None and source.artifact.edited
        artifact = Artifact(stage.writes, {**inputs, **made.inputs}, made.body, edited)
        _write(made, artifact, target)
    if target is not None:
        write_run(_maker_key(stage, target), target.parent, made.run)
        if stage.writes in ("graph", "plan"):
            _keep_weights(artifact, source, target)
        for name in before - stage.owned(artifact):
            (target.parent / name).unlink(missing_ok=True)
    if made.failure is not None:
        raise made.failure
    return artifact


def compile_model(
    job: Job, model: Path, folder: Path, first: str = "import", last: str = "verify"
) -> dict[str, StageInput]:
    """Run the stages from `first` to `last` in `folder`; returns what each wrote, by stage.

    No other process runs a stage in the folder meanwhile. Raises UsageError when the range is empty and whatever a
    stage raises.
    """
    with _alone_in(folder, job):
        return _compile_model(job, model, folder, first, last)


def _compile_model(job: Job, model: Path, folder: Path, first: str, last: str) -> dict[str, StageInput]:
    begin, end = (STAGES.index(stage_named(name)) for name in (first, last))
    if begin > end:
        raise UsageError(f"stage {first} comes after {last}", hint="Exchange --from and --to.")
    if begin <= STAGES.index(stage_named("schedule")) <= end:
        refuse_tuning(job)
    source = StageInput(model) if begin == 0 else read_source(STAGES[begin].reads, folder)
    if first == "schedule":
        source = schedule.bind_sizes(job, source)
    elif begin > 1 and job.asked:
        raise UsageError("sizes are bound at import or schedule", f"--from {first}", "Leave --shape out.")
    before = _graph_before(folder) if begin == 0 and end >= STAGES.index(stage_named("codegen")) else None
    done = {}
    for stage in STAGES[begin : end + 1]:
        target = folder / stage.file
        source = done[stage.name] = StageInput(target, _run_stage(stage, job, source, target))
        if stage.writes == "graph" and before is not None:
            _keep_code(job, before, source)
    return done


def _graph_before(folder: Path) -> Artifact | None:
    """The graph that a folder was compiled from; None without."""
    try:
        found = read_artifact(folder / FILES["graph"], "graph")
    except (ArtifactError, UsageError):
        return None
    return None if found.edited else found


def _keep_code(job: Job, before: Artifact, graph: StageInput) -> None:
    """Make plan and kernels those of a graph, where they are fresh but for the values of weights; what was written for
    the weights before goes."""
    if graph.artifact is None or graph.artifact.body == before.body or graph.artifact.edited:
        return
    source, owned = graph, frozenset[str]()
    for stage, changed in ((stage_named("schedule"), {"graph", "model"}), (stage_named("codegen"), {"plan", "model"})):
        target = graph.folder / stage.file
        try:
            found = read_artifact(target, stage.writes)
        except (ArtifactError, UsageError):
            return
        now = stage.inputs(job, source)
        fresh = all(found.inputs.get(key) == now[key] for key in now.keys() - changed) and not stage.watched(job)
        if not fresh or not stage.intact(found, graph.folder) or _outdated(stage, job, target, found):
            return
        source, owned = StageInput(target, found), owned | stage.owned(found)
    if take_over(job, before.body, graph.artifact, graph.folder, graph.folder):
        job.listener.note("schedule, codegen: kept, for only values of weights changed")
        kept = stage_named("codegen").owned(read_artifact(graph.folder / FILES["kernels"], "kernels"))
        for name in owned - kept:
            (graph.folder / name).unlink(missing_ok=True)


def _outdated(stage: Stage, job: Job, target: Path, found: Artifact) -> bool:
    """Whether other programs than those of now made an artifact, and say so; an edit is kept."""
    if found.edited:
        return False
    said = outdated(_maker_key(stage, target), target.parent)
    if said is not None:
        job.listener.note(f"{stage.name}: {said}; done again")
    return said is not None


def _maker_key(stage: Stage, target: Path) -> str:
    """The name of an artifact's makers in run.json: of its stage, or of a file that is called otherwise, of which a
    folder may have several."""
    return stage.name if target.name == stage.file else target.name


def _written_before(stage: Stage, target: Path | None) -> frozenset[str]:
    """The files that the stage wrote for the artifact that is about to be replaced, in a folder of artifacts."""
    if target is None or target.name != stage.file or not target.is_file():
        return frozenset()
    try:
        names = stage.owned(read_artifact(target, stage.writes))
    except (ArtifactError, UsageError, AttributeError, TypeError):
        return frozenset()  # damaged: nothing is known about it
    return frozenset(name for name in names if is_inside(name))


def _write(made: StageOutput, artifact: Artifact, target: Path | None) -> None:
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


def _keep_weights(artifact: Artifact, source: StageInput, target: Path) -> None:
    """Make weight files reachable beside the artifact. Those that are not here are codegen's to miss."""
    files = {name: digest for name, digest in artifact.body["files"].items() if (source.folder / name).is_file()}
    if not source.folder.samefile(target.parent):
        bring_files(files, source.folder, target.parent)
