"""Compiled models in the cache that were made from one model, and their differences from a request."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilec.cli.served_sizes import ranges_text

if TYPE_CHECKING:
    from tilec.api.request import Request
    from tilec.ir.sizes import SymbolRange

UNSEEN = "tilec, a tool, the recipe, external weights or a TILEC_ variable is another"
"""Possible differences between entries whose recorded facts agree."""

Shapes = Mapping[str, tuple[int | None, ...]]
"""Map from input to its shape; None where an extent is open."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """A compiled model by its files: name of the model, its sha256, the device by name and sha256, shapes of inputs,
    and the ranges of the sizes that are not bound, by symbol."""

    name: str
    model: str
    device: str
    device_sha256: str
    shapes: Shapes
    open: "Mapping[str, SymbolRange]"

    @property
    def text(self) -> str:
        """`bert for host, ids [1, 128]`; where sizes are not bound `bert for host, any size: batch any, seq 1..512`."""
        if self.open:
            return f"{self.name} for {self.device}, any size: {ranges_text(self.open)}"
        return ", ".join([f"{self.name} for {self.device}", *(f"{n} {_shape(s)}" for n, s in self.shapes.items())])


def compiled(folder: Path) -> Compiled | None:
    """The compiled model in a folder of the cache; None where it cannot be read."""
    with suppress(OSError, ValueError, LookupError, TypeError, AttributeError):
        body: Any = json.loads((folder / "3-kernels.json").read_text(encoding="utf-8"))
        made_from, runtime = body["artifact"]["inputs"], body["runtime"]
        tensors = [port for port in runtime["inputs"] if port.get("shape") is not None]
        shapes = {port["name"]: tuple(map(_size, port["shape"])) for port in tensors}
        ranges = {each["name"]: _range(each) for each in runtime.get("sizes", {}).get("symbols", ())}
        return Compiled(str(body["name"]), made_from["model"], str(body["device"]), made_from["device"], shapes, ranges)
    return None


def differences(model: Compiled, request: "Request", device_sha256: str, shapes: Shapes) -> Iterator[str]:
    """The reasons why a compiled model is not the requested one."""
    reasons = []
    if model.device_sha256 != device_sha256:
        same = model.device == request.device
        reasons.append(f"device {model.device} {'was another file then' if same else f'instead of {request.device}'}")
    for name, shape in shapes.items():
        there = model.shapes.get(name)
        if there is not None and there != shape:
            reasons.append(f"{name} is {_shape(there)} instead of {_shape(shape)}")
    yield from reasons or [UNSEEN]


def asked(model: Path, request: "Request") -> Shapes:
    """The shapes of a model's inputs under the sizes of a request."""
    from tilec.api.model_source import open_file

    return {
        port.name: tuple(int(each) if each.isdigit() else request.sizes.get(each) for each in port.extents)
        for port in open_file(model, Path(request.cache)).header.inputs
        if port.extents is not None
    }


def _shape(shape: tuple[int | None, ...]) -> str:
    return f"[{', '.join('?' if extent is None else str(extent) for extent in shape)}]"


def _range(symbol: Mapping[str, Any]) -> "SymbolRange":
    """The range of a symbol of the manifest."""
    from tilec.ir.sizes import SymbolRange

    low, high, divisor = symbol.get("low", 0), symbol.get("high"), symbol.get("divisor", 1)
    return SymbolRange(low, high, divisor, (), symbol.get("origin", ""))


def _size(extent: int | str) -> int | None:
    return extent if isinstance(extent, int) else None
