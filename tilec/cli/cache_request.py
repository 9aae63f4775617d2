"""The compiled model in the cache for a model file, bound sizes, a device and a recipe."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilec.cli.shape_flags import SizeRange
from tilec.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from tilec.api.request import Request


def request_of(
    model: Path,
    bound: Mapping[str, int | SizeRange],
    device: str,
    recipe: str | None,
    cache: Path,
    flag: str = "--bind",
    rooms: bool = False,
) -> "Request":
    """The request to compile a model into the cache at `cache`, with its key; sizes that `flag` does not bind or limit
    are any. With `rooms`, states that grow have room for more in place.

    Raises UsageError for a symbol that the model does not have.
    """
    from tilec.api.model_source import open_file, request_for
    from tilec.api.request import keyed

    opened = open_file(model, cache)
    _require_known(bound, opened.header.symbols, flag)
    sizes = {symbol: size for symbol, size in bound.items() if isinstance(size, int)}
    ranges = {s: (r.low, r.high, r.divisor or 1) for s, r in bound.items() if isinstance(r, SizeRange)}
    return keyed(replace(request_for(opened, device, recipe, sizes, cache, ranges), rooms=rooms))


def sizes_of(model: Path, request: "Request", given: Mapping[str, Any], sizes: Mapping[str, int]) -> dict[str, int]:
    """The sizes of one run as far as they are known: those that are bound, that --shape gives, that arrays tell.

    Raises UsageError for a symbol that the model does not have, and for arrays and sizes that disagree.
    """
    from tilec.api.feeds import Sizes
    from tilec.api.model_source import open_file

    header = open_file(model, Path(request.cache)).header
    _require_known(sizes, header.symbols, "--shape")
    for symbol, size in sizes.items():
        if request.sizes.get(symbol, size) != size:
            raise UsageError(
                f"it is bound to {request.sizes[symbol]}", f"--shape {symbol}={size}", "Leave one of the two out."
            )
    ports = [port for port in header.inputs if port.name in given]
    return Sizes(ports, {**request.sizes, **sizes}).read(given)


def _require_known(symbols: Iterable[str], known: tuple[str, ...], flag: str) -> None:
    """Raise UsageError for a symbol that the model does not have."""
    for symbol in symbols:
        if symbol not in known:
            near = did_you_mean(symbol, known)
            listed = f"The symbols are {', '.join(known)}." if known else "Its sizes are fixed."
            raise UsageError(f"the model has no symbol {symbol!r}", flag, f"Did you mean {near!r}?" if near else listed)
