"""`tilec run`: runs a compiled model once or several times, on arrays from files or on random ones."""

import io
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tilec.artifact import Json, atomic_open
from tilec.cli.console import Console
from tilec.cli.options import AsJson, BoundShapes, ModelDevice, ModelRecipe
from tilec.cli.shape_flags import parse_shapes
from tilec.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from tilec.runtime import Session

RANDOM = "random"


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
    shape: BoundShapes = None,
    repeat: Annotated[int, typer.Option("--repeat", min=1, help="Run this often and tell the time of a run.")] = 1,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of random inputs.")] = 0,
    threads: Annotated[int | None, typer.Option("--threads", min=1, help="Threads of a run.")] = None,
    device: ModelDevice = "host",
    recipe: ModelRecipe = None,
    json: AsJson = False,
) -> None:
    """Run a model; an ONNX file is compiled first, into the cache.

    \b
    tilec run model.tilec/ --input x=x.npy -o out.npz
    tilec run model.onnx --shape batch=1 --repeat 100
    tilec run model.onnx --input inputs.npz --input mask=random --json

    Inputs that are not given are random: normal floats, small integers, indices in range.
    """
    if output is not None and output.suffix not in (".npy", ".npz"):
        raise UsageError("outputs are written as .npz, or as .npy when there is one", str(output))
    given, random = _read_inputs(inputs or ())
    sizes = parse_shapes(shape or ())
    folder = build if build.is_dir() else _compiled(console, build, given, sizes, device, recipe)
    session = _loaded(folder, threads)
    if build.is_dir():
        _refuse_unknown_sizes(session, sizes)
    feeds, drawn = _feeds(folder, session, given, random, seed, sizes)
    for name in drawn:
        console.note(f"input {name}: random, seed {seed}")
    results, times = _timed(lambda: session.run(feeds), repeat)
    if output is not None:
        _write(output, results)
    if repeat > 1:
        console.note(f"latency: median {1e3 * median(times):.3f} ms, fastest {1e3 * min(times):.3f} ms, {repeat} runs")
    summary = {name: _summary(value) for name, value in results.items()}
    if json:
        latency: dict[str, Json] = {"fastest": round(min(times), 9), "median": round(median(times), 9), "runs": repeat}
        console.json({"latency_s": latency, "outputs": summary, "random": list(drawn), "seed": seed})
    else:
        for name, facts in summary.items():
            console.note(f"output {name}: {_line(facts)}")


def _read_inputs(texts: Iterable[str]) -> tuple[dict[str, Any], list[str]]:
    """Arrays by name, and the names of random inputs. Raises UsageError for a malformed option or file."""
    given: dict[str, Any] = {}
    random: list[str] = []
    for text in texts:
        name, sign, file = text.partition("=")
        if not sign and not name.endswith(".npz"):
            raise UsageError(f"--input {text!r} gives no input", hint="Write it like --input x=x.npy.")
        if not sign:
            given.update(_load(Path(name)))
        elif file == RANDOM:
            random.append(name)
        else:
            arrays = _load(Path(file))
            if name not in arrays and len(arrays) > 1:
                near = did_you_mean(name, arrays)
                hint = f"Did you mean {near!r}?" if near else f"It holds {', '.join(map(repr, arrays))}."
                raise UsageError(f"there is no {name!r} in it", file, hint)
            given[name] = arrays.get(name, next(iter(arrays.values()), None))
    return given, random


def _load(path: Path) -> dict[str, Any]:
    """The arrays of a file, that of .npy under "". Raises UsageError when it cannot be read or holds objects."""
    import numpy as np

    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return {"": loaded}
        with loaded:
            return {name: loaded[name] for name in loaded.files}
    except OSError as error:
        raise UsageError(f"cannot read the file: {error.strerror or error}", str(path)) from error
    except (ValueError, EOFError, KeyError) as error:
        raise UsageError(f"this is no file of NumPy arrays: {error}", str(path), "numpy.save writes one.") from error
    except Exception as error:  # zipfile and zlib have exceptions of their own
        raise UsageError(f"the file is damaged: {error}", str(path)) from error


def _compiled(
    console: Console,
    model: Path,
    given: Mapping[str, Any],
    sizes: Mapping[str, int],
    device: str,
    recipe: str | None,
) -> Path:
    """The folder in the cache with the model compiled for its inputs' sizes. Raises UsageError for an unknown size."""
    from tilec.api.compiling import compiled_folder
    from tilec.cli.cache_request import request_of
    from tilec.spec.probe import cache_folder

    request = request_of(model, given, sizes, device, recipe, cache_folder())
    with console.stage("compile"):
        return compiled_folder(request)


def _loaded(folder: Path, threads: int | None) -> "Session":
    from tilec.runtime import load

    return load(folder, threads=threads)


def _refuse_unknown_sizes(session: "Session", sizes: Mapping[str, int]) -> None:
    """Raise UsageError for a size of a symbol that a compiled model does not have."""
    names = [symbol.name for symbol in session.symbols]
    for name in sizes:
        if not names:
            raise UsageError("the sizes of a compiled model are fixed", "--shape", "Name the ONNX file instead.")
        if name not in names:
            near = did_you_mean(name, names)
            hint = f"Did you mean {near!r}?" if near else f"Its sizes are {', '.join(names)}."
            raise UsageError(f"the model has no size {name!r}", "--shape", hint)


def _sizes_of(session: "Session", given: Mapping[str, Any]) -> dict[str, int]:
    """The sizes of symbols that given arrays tell."""
    sizes: dict[str, int] = {}
    for symbol in session.symbols:
        name = session.inputs[symbol.at].name if symbol.space == "input" else ""
        if name in given and given[name].ndim > symbol.dim:
            size = symbol.size_of(given[name].shape[symbol.dim])
            sizes |= {} if size is None else {symbol.name: size}
    return sizes


def _feeds(
    folder: Path,
    session: "Session",
    given: Mapping[str, Any],
    random: Sequence[str],
    seed: int,
    sizes: Mapping[str, int],
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Inputs by name, and the names of the random ones. Raises UsageError for a name that is no input, or cannot be
    drawn."""
    names = [spec.name for spec in session.inputs]
    for name in (*given, *random):
        if name not in names:
            near = did_you_mean(name, names)
            hint = f"Did you mean {near!r}?" if near else f"The inputs are {', '.join(map(repr, names)) or 'none'}."
            raise UsageError(f"the model has no input {name!r}", "--input", hint)
    drawn = tuple(name for name in names if name not in given)
    if not drawn:
        return dict(given), ()
    from tilec.ir.codec import plan_from_json
    from tilec.pipeline import read_source
    from tilec.verify.inputs import Draw, random_inputs, undrawable

    source = read_source("plan", folder)
    plan = plan_from_json(source.body, source.place)
    plan = replace(plan, inputs=tuple(port for port in plan.inputs if port.name in drawn))
    problem = undrawable(plan)
    if problem:
        raise UsageError(problem, hint="Give it with --input, or run the model in Python with tilec.InferenceSession.")
    known = {name: size for name, size in sizes.items() if name in plan.symbols}
    arrays = random_inputs(plan, Draw(seed), {**known, **_sizes_of(session, given)})
    return {name: given[name] if name in given else arrays[name] for name in names}, drawn


def _timed(work: Callable[[], dict[str, Any]], repeat: int) -> tuple[dict[str, Any], list[float]]:
    """The results of the last run, and the seconds of each; the first of several is not counted."""
    results, times = {}, []
    for _ in range(repeat + (repeat > 1)):
        begin = time.perf_counter()
        results = work()
        times.append(time.perf_counter() - begin)
    return results, times[1:] or times


def _write(path: Path, results: Mapping[str, Any]) -> None:
    """Write the outputs; sequences as NAME.0, NAME.1. Raises UsageError for an output that is no array."""
    import numpy as np

    arrays: dict[str, Any] = {}
    for name, value in results.items():
        values = {f"{name}.{i}": each for i, each in enumerate(value)} if isinstance(value, list) else {name: value}
        for key, array in values.items():
            if not isinstance(array, np.ndarray) or array.dtype.hasobject:
                kind = "text" if isinstance(array, np.ndarray) else f"a {type(array).__name__}"
                raise UsageError(f"output {name!r} is {kind}, which is not written to NumPy's files", str(path))
            arrays[key] = array
    memory = io.BytesIO()
    if path.suffix == ".npz":
        np.savez(memory, **arrays)
    elif len(arrays) == 1:
        np.save(memory, next(iter(arrays.values())))
    else:
        raise UsageError(f"{len(arrays)} outputs do not fit into one .npy file", str(path), "Name a .npz file.")
    with atomic_open(path) as file:
        file.write(memory.getbuffer())


def _summary(value: Any) -> dict[str, Json]:
    """Type, shape and range of an output; NaNs and infinities are counted separately."""
    import numpy as np

    if not isinstance(value, np.ndarray):
        return {"type": type(value).__name__, "length": len(value) if isinstance(value, list | dict) else 0}
    facts: dict[str, Json] = {"type": value.dtype.name, "shape": list(value.shape)}
    if value.size and value.dtype.kind in "biufV" and not value.dtype.hasobject:
        numbers = value.astype(np.float64)
        finite = numbers[np.isfinite(numbers)]
        if finite.size:
            facts |= {"min": float(finite.min()), "mean": float(finite.mean()), "max": float(finite.max())}
        odd = {"nan": int(np.isnan(numbers).sum()), "inf": int(np.isinf(numbers).sum())}
        facts |= {kind: count for kind, count in odd.items() if count}
    return facts


def _line(facts: Mapping[str, Json]) -> str:
    """`float32[4, 8], min -2.1, mean 0.03, max 3.4, 2 nan`."""
    head = f"{facts['type']}{facts['shape']}" if "shape" in facts else f"{facts['type']} of {facts['length']}"
    ranges = [f"{key} {facts[key]:.6g}" for key in ("min", "mean", "max") if key in facts]
    odd = [f"{facts[key]} {key}" for key in ("nan", "inf") if key in facts]
    return ", ".join([head, *ranges, *odd])
