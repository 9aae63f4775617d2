"""The compiled model in the cache for a model file, sizes, a device and a recipe."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilec.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from tilec.api.request import Request


def request_of(
    model: Path, given: Mapping[str, Any], sizes: Mapping[str, int], device: str, recipe: str | None, cache: Path
) -> "Request":
    """The request to compile a model into the cache at `cache`, with its key; symbols are bound by `sizes` and by the
    shapes of the arrays `given`.

    Raises UsageError for a symbol that the model does not have and for an unknown size.
    """
    from tilec.api.feeds import Sizes
    from tilec.api.model_source import open_file, request_for
    from tilec.api.request import keyed

    opened = open_file(model, cache)
    header = opened.header
    for symbol in sizes:
        if symbol not in header.symbols:
            near = did_you_mean(symbol, header.symbols)
            known = f"The symbols are {', '.join(header.symbols)}." if header.symbols else "Its sizes are fixed."
            raise UsageError(
                f"the model has no symbol {symbol!r}", "--shape", f"Did you mean {near!r}?" if near else known
            )
    known_sizes = Sizes([port for port in header.inputs if port.name in given], sizes).read(given)
    for symbol in header.symbols:
        if symbol not in known_sizes:
            raise UsageError(f"the size {symbol} is not known", str(model), f"Bind it with --shape {symbol}=SIZE.")
    return keyed(request_for(opened, device, recipe, known_sizes, cache))
