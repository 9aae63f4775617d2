"""How a session serves: threads, what runs while a model is compiled, bound sizes, specialised models."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tilec.api.header import Described, Header
from tilec.api.request import SizeRange
from tilec.api.specializations import Specialize
from tilec.api.warn_once import warn_once
from tilec.api.while_compiling import Meanwhile
from tilec.errors import UsageError, did_you_mean

Range = tuple[int, int | None] | SizeRange
"""The least and the largest size (None: no limit), and perhaps a number that divides all."""


@dataclass(frozen=True)
class Serving:
    """Options of a session as far as they decide what serves a call. `threads` None is the default number; calls wait
    for the compiler or do `meanwhile` something else, and it outlives this process where it is `detached`; `named`
    binds dimensions by the names that the model gives them, `ranges` limits symbols."""

    threads: int | None = None
    meanwhile: Meanwhile = "wait"
    detached: bool = True
    specialize: Specialize = "off"
    named: Mapping[str, int] = field(default_factory=dict)
    ranges: Mapping[str, SizeRange] = field(default_factory=dict)


def named_sizes(header: Header, sizes: Mapping[str, int | Range]) -> tuple[dict[str, int], dict[str, SizeRange]]:
    """Dimension as the model names it -> the size that binds it, and symbol -> range, for sizes and ranges by either
    name.

    Raises UsageError for a name that no input has, and for what is no size.
    """
    by_symbol = {symbol: name for symbol, name in _dimensions(header).items() if isinstance(name, str)}
    by_name = {name: symbol for symbol, name in by_symbol.items()}
    known = dict.fromkeys((*by_symbol, *by_name))
    bound: dict[str, int] = {}
    ranges: dict[str, SizeRange] = {}
    for name, size in sizes.items():
        if name not in known:
            near = did_you_mean(name, known)
            listed = f"The sizes of its inputs are {', '.join(known)}." if known else "Its sizes are fixed."
            raise UsageError(f"the model has no size {name!r}", "sizes", f"Did you mean {near!r}?" if near else listed)
        limits = _limits(size)
        if limits is not None:
            ranges[by_name.get(name, name)] = limits
        elif isinstance(size, int) and size >= 0:
            bound[by_symbol.get(name, name)] = int(size)
        else:
            raise UsageError(f"a size is a number from 0 on, or (least, largest): {name}={size!r}", "sizes")
    return bound, ranges


def _limits(size: int | Range) -> SizeRange | None:
    """The range that is meant, None for what is none."""
    match size:
        case (int(low), int() | None as high, *divisors) if low >= 0 and (high is None or low <= high):
            divisor = divisors[0] if divisors else 1
            return (low, high, divisor) if isinstance(divisor, int) and divisor >= 1 else None
    return None


def bound_symbols(header: Header, named: Mapping[str, int]) -> dict[str, int]:
    """Symbol -> size, for dimensions by the names that the model gives them; a name that no input has is warned about
    once."""
    symbols = _dimensions(header)
    for name in named:
        if name not in symbols.values():
            warn_once(f"no input has a dimension {name!r}: its size has no effect")
    return {symbol: named[name] for symbol, name in symbols.items() if isinstance(name, str) and name in named}


def _dimensions(header: Header) -> dict[str, int | str | None]:
    """Symbol -> the dimension as the model has it."""
    return {text: extent for port in header.inputs for extent, text in _pairs(port) if text in header.symbols}


def _pairs(port: Described) -> Iterable[tuple[int | str | None, str]]:
    return zip(port.shape or (), port.extents or (), strict=False)
