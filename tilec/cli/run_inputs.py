"""Inputs of `tilec run`: arrays from files, and random ones at sizes that are given, told by arrays, or usual."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilec.errors import UsageError, did_you_mean, unreadable

if TYPE_CHECKING:
    from tilec.runtime import Session

RANDOM = "random"


def read_inputs(texts: Iterable[str]) -> tuple[dict[str, Any], list[str]]:
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
        raise unreadable(error, str(path)) from error
    except (ValueError, EOFError, KeyError) as error:
        raise UsageError(f"this is no file of NumPy arrays: {error}", str(path), "numpy.save writes one.") from error
    except Exception as error:  # zipfile and zlib have exceptions of their own
        raise UsageError(f"the file is damaged: {error}", str(path), "Write or download it again.") from error


def refuse_unknown_sizes(session: "Session", sizes: Mapping[str, int]) -> None:
    """Raise UsageError for a size of a symbol that a compiled model does not have."""
    names = [symbol.name for symbol in session.symbols]
    for name in sizes:
        if not names:
            raise UsageError("the sizes of a compiled model are fixed", "--shape", "Name the ONNX file instead.")
        if name not in names:
            near = did_you_mean(name, names)
            hint = f"Did you mean {near!r}?" if near else f"Its sizes are {', '.join(names)}."
            raise UsageError(f"the model has no size {name!r}", "--shape", hint)


def refuse_unknown_inputs(
    given: Iterable[str], random: Sequence[str], names: Sequence[str], defaults: Collection[str]
) -> None:
    """Raise UsageError for a name that is no input; those with `defaults` may be given, and not be drawn."""
    for name in (*given, *random):
        if name not in names and (name not in defaults or name in random):
            near = did_you_mean(name, names)
            hint = f"Did you mean {near!r}?" if near else f"The inputs are {', '.join(map(repr, names)) or 'none'}."
            raise UsageError(f"the model has no input {name!r}", "--input", hint)


def feeds_of(
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
    refuse_unknown_inputs(given, random, names, [spec.name for spec in session.defaults])
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
    arrays = random_inputs(plan, Draw(seed), {**known, **_sizes_of(session, given, sizes)})
    return {**given, **{name: arrays[name] for name in drawn}}, drawn


def _sizes_of(session: "Session", given: Mapping[str, Any], asked: Mapping[str, int]) -> dict[str, int]:
    """The sizes of symbols that given arrays tell. Raises UsageError for one that is not as `asked`."""
    sizes: dict[str, int] = {}
    for symbol in session.symbols:
        name = session.inputs[symbol.at].name if symbol.space == "input" else ""
        if name in given and given[name].ndim > symbol.dim:
            extent = given[name].shape[symbol.dim]
            size = symbol.size_of(extent)
            sizes |= {} if size is None else {symbol.name: size}
            if asked.get(symbol.name, size) != size:
                message = f"input {name!r} has {extent} along dimension {symbol.dim}"
                raise UsageError(
                    message, f"--shape {symbol.name}={asked[symbol.name]}", "Leave --shape or the file out."
                )
    return sizes
