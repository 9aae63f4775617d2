"""Inputs from a file instead of random ones (`verify.inputs` in a recipe)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tilec.errors import UsageError, did_you_mean, unreadable
from tilec.ir.plan import Plan
from tilec.ir.types import numpy_dtype
from tilec.verify.input_choices import compared_values
from tilec.verify.inputs import Array, Draw, draws, random_inputs, undrawable
from tilec.verify.port_values import as_element


@dataclass(frozen=True, slots=True)
class InputFile:
    """Inputs in a .npz file, under the names of the model's inputs."""

    file: Path


Feeding = Draw | InputFile
"""The source of one set of inputs."""


def feedings(seeds: tuple[int, ...], file: str | None, model: Path) -> tuple[Feeding, ...]:
    """The sets of inputs to verify `model` with: those of `file`, or one draw per seed without a file."""
    return draws(seeds, compared_values(model)) if file is None else (InputFile(Path(file)),)


def unfeedable(plan: Plan, file: str | None) -> str | None:
    """The reason why a model has no usable inputs, None if it has."""
    return undrawable(plan) if file is None else None


def feeds_of(plan: Plan, feeding: Feeding) -> dict[str, Array]:
    """One array for every input of the model. Raises UsageError for a file without them."""
    if isinstance(feeding, Draw):
        drawn = random_inputs(plan, feeding)
        return {p.name: as_element(plan, p.tensor, drawn[p.name]) for p in plan.inputs}
    arrays = read_arrays(feeding.file)
    wanted = {port.name: plan.tensors.get(port.tensor) for port in plan.inputs}
    feeds: dict[str, Array] = {}
    for name, tensor in wanted.items():
        if name not in arrays:
            near = did_you_mean(name, arrays)
            hint = f"Did you mean {near!r}, which is there?" if near else f"It holds {', '.join(arrays) or 'nothing'}."
            raise UsageError(f"the input {name!r} is not in it", str(feeding.file), hint)
        array = arrays[name]
        if array.dtype.kind == "V" and tensor is not None:
            array = array.view(numpy_dtype(tensor.ttype))  # NumPy's files do not know bfloat16
        feeds[name] = array.astype(object) if array.dtype.kind == "U" else array
    return feeds


def read_arrays(path: Path) -> dict[str, Array]:
    """The arrays of a .npz file by name. Raises UsageError when it cannot be read or holds objects."""
    try:
        loaded: Any = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            raise ValueError("it holds one array without a name")
        with loaded:
            return {name: loaded[name] for name in loaded.files}
    except OSError as error:
        raise unreadable(error, str(path)) from error
    except Exception as error:  # zipfile and zlib have exceptions of their own
        raise UsageError(f"this is no .npz file of arrays: {error}", str(path), "numpy.savez writes one.") from error


def labelled(feeding: Feeding) -> dict[str, Any]:
    """The entry of a set of inputs in the record of a run."""
    if isinstance(feeding, Draw):
        return {"seed": feeding.seed, "mean": feeding.mean}
    return {"inputs": feeding.file.name}
