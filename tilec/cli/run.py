"""`tilec run`: runs a compiled model once or several times, on arrays from files or on random ones."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tilec.artifact import Json
from tilec.cli.completion import sizes as completed_sizes
from tilec.cli.console import Console
from tilec.cli.options import MOST_THREADS, AsJson, Bind, ModelDevice, ModelRecipe
from tilec.cli.run_inputs import feeds_of, read_inputs, refuse_unknown_inputs, refuse_unknown_sizes
from tilec.cli.run_outputs import summary_line, summary_of, write_outputs
from tilec.cli.shape_flags import SizeRange, parse_size_sets, parse_sizes
from tilec.errors import UsageError

if TYPE_CHECKING:
    from tilec.runtime import Session


def run_(
    console: Console,
    build: Annotated[Path, typer.Argument(metavar="BUILD|MODEL", help="Folder of a compiled model, or an ONNX file.")],
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            metavar="NAME=FILE",
            help="An input from a .npy or .npz file, or NAME=random; may be repeated. FILE.npz alone gives all of it.",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write the outputs to this .npz file.")
    ] = None,
    shape: Annotated[
        list[str] | None,
        typer.Option(
            "--shape",
            metavar="SYMBOL=SIZE[,...]",
            help="Sizes of random inputs; one that is given again begins another run.",
            autocompletion=completed_sizes,
        ),
    ] = None,
    bind: Bind = None,
    repeat: Annotated[int, typer.Option("--repeat", min=1, help="Run this often and tell the time of a run.")] = 1,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of random inputs.")] = 0,
    threads: Annotated[int | None, typer.Option("--threads", min=1, max=MOST_THREADS, help="Threads of a run.")] = None,
    device: ModelDevice = None,
    recipe: ModelRecipe = None,
    json: AsJson = False,
) -> None:
    """Run a model; an ONNX file is compiled first, into the cache, for all sizes that it can have.

    \b
    tilec run model.tilec/ --input x=x.npy -o out.npz
    tilec run model.onnx --shape batch=1,seq=128 --shape seq=100 --repeat 100
    tilec run model.onnx --bind batch=1,seq=1..512 --json
    tilec run model.onnx --input inputs.npz --input mask=random

    Inputs that are not given are random: normal floats, small integers, indices in range.
    """
    if output is not None and output.suffix not in (".npy", ".npz"):
        raise UsageError("this is no .npz or .npy file", str(output), "All outputs go to a .npz, one alone to a .npy.")
    from tilec.ir.sizes import sizes_text

    given, random = read_inputs(inputs or ())
    sets = parse_size_sets(shape or ())
    if output is not None and len(sets) > 1:
        raise UsageError(f"the outputs of {len(sets)} runs do not fit into one file", str(output), "Give one --shape.")
    asked = {"--bind": bind, "--device": device, "--recipe": recipe}
    for option in (name for name, value in asked.items() if value and build.is_dir()):
        raise UsageError("this model is compiled already", option, "Name the ONNX file instead.")
    bound = parse_sizes(bind or (), "--bind")
    sessions: dict[Path, Session] = {}
    runs: list[dict[str, Json]] = []
    for sizes in sets:
        named = (given, random, sizes)
        folder = build if build.is_dir() else _compiled(console, build, named, bound, device or "host", recipe)
        session = sessions.get(folder) or sessions.setdefault(folder, _loaded(folder, threads))
        if build.is_dir():
            refuse_unknown_sizes(session, sizes)
        feeds, drawn = feeds_of(folder, session, given, random, seed, sizes)
        if len(sets) > 1:
            console.note(f"shape {sizes_text(sizes)}:")
        for name in drawn:
            console.note(f"input {name}: random, seed {seed}")
        results, times = _timed(partial(session.run, feeds), repeat)
        if output is not None:
            write_outputs(output, results)
        runs.append(_told(console, results, times, repeat, json))
        runs[-1] |= {"random": list(drawn), "seed": seed, "sizes": dict(sizes)}
    if json:
        console.json(runs[0] if len(runs) == 1 else {"runs": [*runs]})


def _told(console: Console, results: Mapping[str, Any], times: list[float], repeat: int, json: bool) -> dict[str, Json]:
    """Times and outputs of a run, said unless they are asked for as JSON, and as JSON."""
    if repeat > 1:
        console.note(f"latency: median {1e3 * median(times):.3f} ms, fastest {1e3 * min(times):.3f} ms, {repeat} runs")
    summary = {name: summary_of(value) for name, value in results.items()}
    for name, facts in summary.items() if not json else ():
        console.note(f"output {name}: {summary_line(facts)}")
    latency: dict[str, Json] = {"fastest": round(min(times), 9), "median": round(median(times), 9), "runs": repeat}
    return {"latency_s": latency, "outputs": {**summary}}


def _compiled(
    console: Console,
    model: Path,
    named: tuple[Mapping[str, Any], Sequence[str], Mapping[str, int]],
    bound: Mapping[str, int | SizeRange],
    device: str,
    recipe: str | None,
) -> Path:
    """The folder in the cache with the model compiled for any size but those bound; where it needs its sizes, for those
    of this run, whose arrays, random inputs and sizes are `named`. Raises UsageError for an unknown input or size."""
    from tilec.api.any_size import compiled_already, compiled_for
    from tilec.api.model_source import open_file
    from tilec.artifact import cache_folder
    from tilec.cli.cache_request import request_of, sizes_of

    given, random, sizes = named
    request = request_of(model, bound, device, recipe, cache_folder())
    header = open_file(model, Path(request.cache)).header
    names = [port.name for port in header.inputs]
    refuse_unknown_inputs(given, random, names, [port.name for port in header.overridable])
    told = sizes_of(model, request, given, sizes)
    with nullcontext() if compiled_already(request, told) else console.stage("compile"):
        folder, reason = compiled_for(request, told)
    if reason is not None:
        console.note(f"compiled for these sizes only: {reason}")
    return folder


def _loaded(folder: Path, threads: int | None) -> "Session":
    from tilec.runtime import load

    return load(folder, threads=threads)


def _timed(work: Callable[[], dict[str, Any]], repeat: int) -> tuple[dict[str, Any], list[float]]:
    """The results of the last run, and the seconds of each; the first of several is not counted."""
    results, times = {}, []
    for _ in range(repeat + (repeat > 1)):
        begin = time.perf_counter()
        results = work()
        times.append(time.perf_counter() - begin)
    return results, times[1:] or times
