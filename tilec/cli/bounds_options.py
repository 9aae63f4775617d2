"""Options of `tilec bounds`: extents, element types, capacities, levels."""

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from tilec.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from tilec.analysis.bounds.rows import At
    from tilec.spec.device import DeviceSpec


def capacities(texts: Iterable[str], units: int = 1) -> "list[At]":
    """The capacities of --capacity, each of `units`. Raises UsageError for a size without a valid unit."""
    from tilec.analysis.bounds.rows import at_capacity

    result = []
    for text in (part for given in texts for part in given.split(",")):
        try:
            result.append(at_capacity(text, units))
        except ValueError as error:
            raise UsageError(str(error), "--capacity", "Write it like --capacity 64KiB.") from None
    return result


def device_of(name: str | None) -> "DeviceSpec | None":
    """The device of --device. Raises UsageError and ConfigError."""
    if name is None:
        return None
    from tilec.spec.resolve import resolve_device

    return resolve_device(name)


def levels_of(device: "DeviceSpec | None") -> "list[At]":
    """The capacities of a device's levels; none without a device."""
    if device is None:
        return []
    from tilec.analysis.bounds.rows import at_levels
    from tilec.bounds.levels import level_capacities

    return at_levels(level_capacities(device))


def extents(texts: Iterable[str]) -> dict[str, int]:
    """Map from iterator to extent, from --dims. Raises UsageError for another form and for an iterator given twice."""
    example = "m=4096,n=4096,k=4096"
    pairs = _pairs("--dims", texts, example)
    if "" in pairs:
        raise UsageError(f"{pairs['']!r} names no iterator", "--dims", f"Write it like --dims {example}.")
    return {name: _number("--dims", text, example) for name, text in pairs.items()}


def widths(dtype: list[str] | None, bits: list[str] | None) -> int | Mapping[str, int]:
    """Bits of an element, of all tensors or by name, from --dtype or --bits; f32 without either."""
    if dtype and bits:
        raise UsageError("--dtype and --bits both say how large elements are", hint="Leave one of them out.")
    if bits:
        example = "16 or --bits A=16,B=4,C=32"
        bits_by_name = {
            name: _number("--bits", text, example) for name, text in _pairs("--bits", bits, example).items()
        }
    else:
        pairs = _pairs("--dtype", dtype or ["f32"], "f16 or --dtype A=f16,B=i8,C=f32")
        bits_by_name = {name: _bits_of(text) for name, text in pairs.items()}
    if "" in bits_by_name and len(bits_by_name) > 1:
        raise UsageError("element sizes are given for all tensors and for some", hint="Name every tensor, or none.")
    return bits_by_name.get("", bits_by_name)


def _pairs(option: str, texts: Iterable[str], example: str) -> dict[str, str]:
    """Map from NAME to VALUE of `a=1,b=2`, and from "" to a value without a name."""
    pairs: dict[str, str] = {}
    for part in (part for text in texts for part in text.split(",")):
        match = re.fullmatch(r"\s*(?:([A-Za-z_]\w*)\s*=)?\s*(\w+)\s*", part)
        if match is None:
            raise UsageError(f"{part!r} is not understood", option, f"Write it like {option} {example}.")
        name = match[1] or ""
        if pairs.setdefault(name, match[2]) != match[2]:
            raise UsageError(
                f"{name or 'the value'} is given twice: {pairs[name]} and {match[2]}", option, "Leave one out."
            )
    return pairs


def _number(option: str, text: str, example: str) -> int:
    if text.isascii() and text.isdigit() and len(text) > 15:
        raise UsageError(f"{text[:20]} is beyond every size", option, f"Write it like {option} {example}.")
    if not text.isascii() or not text.isdigit():
        raise UsageError(f"{text!r} is not a whole number", option, f"Write it like {option} {example}.")
    return int(text)


def _bits_of(ttype: str) -> int:
    from tilec.ir.types import TTYPES

    if ttype in TTYPES:
        return TTYPES[ttype].bits
    near = did_you_mean(ttype, TTYPES)
    hint = f"Did you mean {near!r}?" if near else f"Known: {', '.join(TTYPES)}; or give --bits."
    raise UsageError(f"no element type is called {ttype!r}", "--dtype", hint)
