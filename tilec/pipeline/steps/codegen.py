"""The stage `codegen`: a plan as tile programs, weights, and a library where the device has a back end."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from tilec.abi.weights_file import is_weights_file
from tilec.artifact import Artifact, bring_files, digest_file, digest_object, require_files
from tilec.artifact.filenames import refuse_outside
from tilec.errors import ArtifactError, TilecError
from tilec.pipeline.job import DEVICE_FILE, FILES, RECIPE_FILE, Job, StageInput, StageOutput
from tilec.pipeline.steps.sources import carried, moved_files, refuse_illegal
from tilec.pipeline.text_printer import TextPrinter
from tilec.progress import Advance


def kernels_inputs(job: Job, source: StageInput) -> dict[str, str]:
    """Digests that decide whether kernels are fresh."""
    return {
        **carried(source, "model", "device"),
        "plan": digest_object(source.body),
        "recipe": job.recipe.digest("codegen"),
    }


def generate_kernels(job: Job, source: StageInput, target: Path, advance: Advance) -> StageOutput:
    """Generate code into the folder of `target`; plan and device go beside it when they come from elsewhere."""
    from tilec.codegen.driver import codegen
    from tilec.ir.codec import plan_from_json
    from tilec.ir.verify.plan import check_plan

    assert job.device is not None
    assert source.artifact is not None
    source.artifact.require_inputs({"device": job.device.digest()}, source.place)
    plan = plan_from_json(source.body, source.place)
    refuse_illegal("plan", check_plan(plan), source)
    bring_files(plan.files, source.folder, target.parent, moved_files(job, source, plan.files))
    require_files(plan.files, target.parent)
    observe = TextPrinter(job.listener.note) if job.recipe.codegen.print_between_passes else None
    options, folder = job.recipe.codegen, target.parent
    ahead = job.ahead if observe is None else None
    body = codegen(
        plan, job.device, options, folder=folder, cache=job.cache, advance=advance, observe=observe, ahead=ahead
    )
    _note_missing(job, body)
    beside: dict[str, Iterable[bytes]] = {}
    if not source.folder.samefile(target.parent) or source.path.name != FILES["plan"]:
        beside[FILES["plan"]] = [source.artifact.text().encode()]
    for name in (DEVICE_FILE, RECIPE_FILE):
        if (source.folder / name).is_file() and not (target.parent / name).exists():
            beside[name] = [(source.folder / name).read_bytes()]
    return StageOutput(body, beside)


def _note_missing(job: Job, body: Mapping[str, Any]) -> None:
    """Say what the code of a device lacks here, or why a model has none."""
    from tilec.codegen.backend import backend_of

    assert job.device is not None
    backend = backend_of(job.device)
    if "without_code" in body:
        job.listener.note(f"tile programs only: {body['without_code']}")
    elif backend is not None and (missing := backend.lacks(job.device)) is not None:
        job.listener.note(f"{missing.reason}: {missing.fix}")
    if words := spills(body.get("runtime", {}).get("gpu", {}).get("kernels", ())):
        job.listener.note(words)


def spills(kernels: Sequence[Mapping[str, Any]]) -> str:
    """Words about the kernels that keep registers in memory, and why: their blocks have no more. Empty for none."""
    spilling = sorted((each for each in kernels if each.get("spilled_bytes")), key=lambda each: -each["spilled_bytes"])
    if not spilling:
        return ""
    most = spilling[0]
    return (
        f"{len(spilling)} of {len(kernels)} kernels keep registers in memory, {most['symbol']} most: its threads, "
        f"{most['block']} a block, have {most['registers']} registers each and store and load {most['spilled_bytes']} "
        "bytes beside them"
    )


def named_files_there(artifact: Artifact, folder: Path) -> bool:
    """Whether every file that the kernels name is there as it was."""
    try:
        require_files(dict(_named_files(artifact.body)), folder)
    except TilecError:
        return False
    return True


def require_code(artifact: Artifact, folder: Path, moved: bool) -> None:
    """Raise ArtifactError for a library or text, or for a program where there is no code, that is not there as codegen
    wrote it, and for weights that are not there or of another size; those of a model that was `moved` are looked for
    later."""
    runtime = artifact.body.get("runtime", {})
    for file in runtime.get("weights", ()):
        refuse_outside(file["file"], str(folder))
        path = folder / file["file"]
        if moved and not is_weights_file(file["file"]):
            continue
        if not path.is_file() or path.stat().st_size != file["bytes"]:
            problem = "is another file now" if path.is_file() else "is not here"
            hint = "Compile the model again, or name it with --model PATH."
            raise ArtifactError(f"{path.name}, which holds weights, {problem}", str(folder), hint)
    parts = [runtime.get("library"), runtime.get("gpu")] if runtime else artifact.body.get("programs", {})
    for name, sha256 in _named_files(parts):
        refuse_outside(name, str(folder))
        there = (folder / name).is_file()
        if not there or digest_file(folder / name) != sha256:
            problem = "is not the file that was compiled" if there else "is not here"
            raise ArtifactError(f"{name} {problem}", str(folder), "Run `tilec codegen` again.")


def code_files(artifact: Artifact) -> frozenset[str]:
    """The library, the prepared weights and the programs that codegen wrote for an artifact."""
    programs = [name for name, _ in _named_files(artifact.body.get("programs", {}))]
    runtime = artifact.body.get("runtime", {})
    library = [name for key in ("library", "gpu") for name, _ in _named_files(runtime.get(key, {}))]
    named = [name for name, _ in _named_files(runtime.get("weights", []))]
    weights = [name for name in named if is_weights_file(name)]
    return frozenset(
        (*library, *weights, *programs, *(str(PurePosixPath(name).with_suffix(".txt")) for name in programs))
    )


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
