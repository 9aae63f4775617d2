"""Outputs of `tilec run`: a file of arrays, a summary of each, a line about it."""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tilec.artifact import Json, atomic_open
from tilec.errors import UsageError


def write_outputs(path: Path, results: Mapping[str, Any]) -> None:
    """Write the outputs; sequences as NAME.0, NAME.1. Raises UsageError for an output that is no array."""
    import numpy as np

    arrays: dict[str, Any] = {}
    for name, value in results.items():
        values = {f"{name}.{i}": each for i, each in enumerate(value)} if isinstance(value, list) else {name: value}
        for key, array in values.items():
            if not isinstance(array, np.ndarray) or array.dtype.hasobject:
                kind = "text" if isinstance(array, np.ndarray) else f"a {type(array).__name__}"
                message = f"output {name!r} is {kind}, which is not written to NumPy's files"
                raise UsageError(message, str(path), "Leave -o out to see it; tilec.load(FOLDER).run returns it.")
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


def summary_of(value: Any) -> dict[str, Json]:
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


def summary_line(facts: Mapping[str, Json]) -> str:
    """`float32[4, 8], min -2.1, mean 0.03, max 3.4, 2 nan`."""
    head = f"{facts['type']}{facts['shape']}" if "shape" in facts else f"{facts['type']} of {facts['length']}"
    ranges = [f"{key} {facts[key]:.6g}" for key in ("min", "mean", "max") if key in facts]
    odd = [f"{facts[key]} {key}" for key in ("nan", "inf") if key in facts]
    return ", ".join([head, *ranges, *odd])
