"""The work of each stage: which digests decide whether it is fresh, and what it makes."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from tilec.artifact import Artifact, bring_files, digest_file, digest_object, require_files
from tilec.errors import ArtifactError, TilecError, UnsupportedError, UsageError, VerificationMismatch
from tilec.pipeline.host_match import host_mismatch
from tilec.pipeline.job import DEVICE_FILE, FILES, Advance, Job, StageInput, StageOutput, read_source
from tilec.pipeline.pass_printer import PassPrinter
from tilec.pipeline.text_printer import TextPrinter
from tilec.pipeline.tuning import record_digests, record_place, told, tuner_of

if TYPE_CHECKING:
    from tilec.ir.plan import Plan


def graph_inputs(job: Job, source: StageInput) -> dict[str, str]:
    """What a graph depends on. Raises UsageError when the model is not there."""
    if not source.path.is_file():
        from tilec.importer.loader import load_model

        load_model(source.path)  # says best what is wrong
    return {"model": digest_file(source.path), "recipe": job.recipe.digest("import", "types", "fallback", "shapes")}


def import_graph(job: Job, source: StageInput, _target: Path, _advance: Advance) -> StageOutput:
    """Read a model as a graph; all sizes stay symbolic first and are bound afterwards."""
    from tilec.importer import UnsupportedModelError, import_model
    from tilec.ir.bind import bind
    from tilec.ir.codec import graph_to_json

    fallback = job.recipe.fallback
    try:
        imported = import_model(source.path, fallback=fallback)
        sizes = _sizes(job, imported.graph.symbols)
        decided = not imported.graph.calls
    except UnsupportedModelError:
        if not job.shapes:
            raise
        sizes, decided = dict(job.shapes), False
    if sizes and not decided:
        # Some shapes can only be decided with the sizes known.
        imported, sizes = import_model(source.path, sizes=sizes, fallback=fallback), {}
    watch = PassPrinter(job.listener.note) if job.recipe.import_.print_between_passes else None
    if watch is not None:
        watch("translate", imported.graph)
    graph = bind(imported.graph, sizes) if sizes else imported.graph
    if watch is not None and sizes:
        watch("bind", graph)
    files = {**graph.files, source.path.name: digest_file(source.path)}
    graph = replace(graph, files=files)
    return StageOutput(graph_to_json(graph), imported.files)


def _sizes(job: Job, symbols: Iterable[str]) -> dict[str, int]:
    """The sizes to bind: those of the graph's symbols, and those that a flag names, known or not."""
    known = set(symbols)
    return {symbol: size for symbol, size in job.shapes.items() if symbol in known or symbol in job.asked}


def files_unchanged(artifact: Artifact, folder: Path) -> bool:
    """Whether the weight files of a graph are as they were."""
    try:
        require_files(artifact.body.get("files", {}), folder)
    except TilecError:
        return False
    return True


def written_files(artifact: Artifact) -> frozenset[str]:
    """The files that import wrote beside a graph: constants of its own, and clusters for onnxruntime."""
    constants = artifact.body.get("constants", {}).values()
    owned = [c["file"] for c in constants if isinstance(c, Mapping) and c.get("owned") is True]
    clusters = [name for call in artifact.body.get("calls", ()) for name in (call["file"], *call.get("data", ()))]
    return frozenset((*owned, *clusters))


def plan_inputs(job: Job, source: StageInput) -> dict[str, str]:
    """What a plan depends on; the graph counts with its sizes bound."""
    assert job.device is not None
    return {
        **_carried(source, "model"),
        "graph": digest_object(source.body),
        "device": job.device.digest(),
        "recipe": job.recipe.digest("schedule"),
        **record_digests(job),
    }


def _carried(source: StageInput, *roles: str) -> dict[str, str]:
    inputs = source.artifact.inputs if source.artifact else {}
    return {role: inputs[role] for role in roles if role in inputs}


def bind_sizes(job: Job, source: StageInput) -> StageInput:
    """A graph with the job's sizes bound: what `schedule` reads, however the sizes were given.

    Raises UsageError for a symbol that a flag names and the graph does not have.
    """
    assert source.artifact is not None
    sizes = _sizes(job, source.body.get("symbols", ()))
    if not sizes:
        return source
    from tilec.ir.bind import bind
    from tilec.ir.codec import graph_from_json, graph_to_json

    graph = bind(graph_from_json(source.body, source.place), sizes)
    return replace(source, artifact=replace(source.artifact, body=graph_to_json(graph)))


def schedule_graph(job: Job, source: StageInput, target: Path, advance: Advance) -> StageOutput:
    """Plan a graph for the job's device."""
    from tilec.ir.codec import graph_from_json, plan_to_json
    from tilec.ir.verify.graph import check_graph
    from tilec.pipeline.code_decisions import decide_for
    from tilec.scheduler import schedule
    from tilec.scheduler.trace import NO_TRACE

    assert job.device is not None
    graph = graph_from_json(source.body, source.place)
    _refuse("graph", check_graph(graph), source)
    files = {DEVICE_FILE: [job.device_text.encode()]} if job.device_text else {}
    printer = PassPrinter(job.listener.note) if job.recipe.schedule.print_between_passes else None
    if printer is not None:
        printer("import", graph)
    with tuner_of(job, graph, target, advance) as tuner:
        decide = decide_for(job.device)
        plan = schedule(graph, job.device, job.recipe.schedule, printer or NO_TRACE, tuner, decide)
    if job.recipe.schedule.bounds:
        plan = _with_bounds(plan, job)
    if tuner is None:
        return StageOutput(plan_to_json(plan), files)
    job.listener.note(told(tuner))
    return StageOutput(plan_to_json(plan), files, {"record": digest_file(record_place(job, target))})


def _with_bounds(plan: "Plan", job: Job) -> "Plan":
    """The plan with its bounds; without them, and a note, where they cannot be counted."""
    from tilec.pipeline.bounds import plan_with_bounds

    assert job.device is not None
    try:
        return plan_with_bounds(plan, job.device)
    except UnsupportedError as error:
        job.listener.note(f"bounds: none, {error.message}")
        return plan


def _refuse(kind: str, problems: tuple[str, ...], source: StageInput) -> None:
    """Raise ArtifactError when an artifact, perhaps edited by hand, breaks a rule."""
    if problems:
        also = "".join(f"\n  Also: {problem}" for problem in problems[1:5])
        raise ArtifactError(f"illegal {kind}: {problems[0]}", source.place, f"Undo the edit or make it anew.{also}")


def kernels_inputs(job: Job, source: StageInput) -> dict[str, str]:
    """What kernels depend on."""
    return {
        **_carried(source, "model", "device"),
        "plan": digest_object(source.body),
        "recipe": job.recipe.digest("codegen"),
    }


def generate_kernels(job: Job, source: StageInput, target: Path, advance: Advance) -> StageOutput:
    """Generate code into the folder of `target`; plan and device go beside it when they come from elsewhere.

    Raises UnsupportedError while a size is not bound.
    """
    from tilec.codegen.driver import codegen
    from tilec.ir.codec import plan_from_json
    from tilec.ir.verify.plan import check_plan

    assert job.device is not None
    assert source.artifact is not None
    source.artifact.require_inputs({"device": job.device.digest()}, source.place)
    plan = plan_from_json(source.body, source.place)
    _refuse("plan", check_plan(plan), source)
    if plan.symbols:
        flags = " ".join(f"--shape {symbol}=SIZE" for symbol in plan.symbols)
        raise UnsupportedError(
            f"code needs fixed sizes, {', '.join(plan.symbols)} {'is' if len(plan.symbols) == 1 else 'are'} not bound",
            source.place,
            f"Bind them: {flags}.",
        )
    bring_files(plan.files, source.folder, target.parent, _moved(job, source, plan.files))
    require_files(plan.files, target.parent)
    observe = TextPrinter(job.listener.note) if job.recipe.codegen.print_between_passes else None
    options, folder = job.recipe.codegen, target.parent
    body = codegen(plan, job.device, options, folder=folder, cache=job.cache, advance=advance, observe=observe)
    beside: dict[str, Iterable[bytes]] = {}
    if not source.folder.samefile(target.parent) or source.path.name != FILES["plan"]:
        beside[FILES["plan"]] = [source.artifact.text().encode()]
    if (source.folder / DEVICE_FILE).is_file() and not (target.parent / DEVICE_FILE).exists():
        beside[DEVICE_FILE] = [(source.folder / DEVICE_FILE).read_bytes()]
    return StageOutput(body, beside)


def _moved(job: Job, source: StageInput, files: Mapping[str, str]) -> dict[str, Path]:
    """Where the weight files are that are not beside the artifact: --model names the model, the others lie by it."""
    assert source.artifact is not None
    if job.model is None:
        return {}
    model = source.artifact.inputs.get("model")
    away = {name: digest for name, digest in files.items() if not (source.folder / name).is_file()}
    return {name: job.model if digest == model else job.model.parent / name for name, digest in away.items()}


def named_files_there(artifact: Artifact, folder: Path) -> bool:
    """Whether every file that the kernels name is there as it was."""
    try:
        require_files(dict(_named_files(artifact.body)), folder)
    except TilecError:
        return False
    return True


def _named_files(value: Any) -> Iterator[tuple[str, str]]:
    """(file, sha256) of every object in `value` that names a file."""
    match value:
        case {"file": str(file), "sha256": str(sha256)}:
            yield file, sha256
        case Mapping():
            for inner in value.values():
                yield from _named_files(inner)
        case list():
            for inner in value:
                yield from _named_files(inner)


def code_files(artifact: Artifact) -> frozenset[str]:
    """The library and the programs that codegen wrote for an artifact; weights are overwritten in place."""
    programs = [name for name, _ in _named_files(artifact.body.get("programs", {}))]
    library = [name for name, _ in _named_files(artifact.body.get("runtime", {}).get("library", {}))]
    return frozenset((*library, *programs, *(str(PurePosixPath(name).with_suffix(".txt")) for name in programs)))


def report_inputs(job: Job, source: StageInput) -> dict[str, str]:
    """What a report depends on. Raises ArtifactError when the plan beside the kernels, or --model, is another one."""
    plan = _plan_beside(source)
    if job.model is not None:
        model_file(job, source, plan.body.get("files", {}))
    return {
        **_carried(source, "model", "device"),
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
    from tilec.ir.codec import plan_from_json
    from tilec.ir.verify.plan import check_plan
    from tilec.verify import verify

    assert source.artifact is not None
    beside = _plan_beside(source)
    plan = plan_from_json(beside.body, beside.place)
    _refuse("plan", check_plan(plan), beside)
    model = model_file(job, source, plan.files)
    bring_files(plan.files, source.folder, source.folder, _moved(job, source, plan.files))
    instrument = instrument_of(job, source.folder) if job.device else None
    because = host_mismatch(job.device) if job.device else None
    outcome = verify(source.folder, plan, source.body, model, job.recipe.verify, advance, instrument, because)
    failure = None
    if outcome.failure is not None:
        failure = VerificationMismatch(outcome.failure, str(source.folder), outcome.hint)
    return StageOutput(outcome.report, run=outcome.run, failure=failure)


def instrument_of(job: Job, folder: Path) -> "Callable[[Plan, Path], None]":
    """Compiles variants of the plan of `folder`: verify may not call the stage before it, so it is bound here."""

    def instrument(plan: "Plan", temporary: Path) -> None:
        from tilec.codegen.driver import codegen

        assert job.device is not None
        bring_files(plan.files, folder, temporary)
        options, quiet = job.recipe.codegen, lambda _done, _total: None
        body = codegen(plan, job.device, options, folder=temporary, cache=job.cache, advance=quiet)
        Artifact("kernels", {}, body).write(temporary / FILES["kernels"])

    return instrument


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
