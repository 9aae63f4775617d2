"""The flag --shape: sizes of symbols (`seq=128`), and ranges of them with a divisor (`seq=8..512/8`)."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tilec.errors import UsageError

EXAMPLE = "Write it like {flag} batch=1,seq=8..512/8 (a size; from..to, in multiples of)."

_PART = re.compile(r"\s*([A-Za-z_]\w*)\s*=\s*(\d+)\s*(?:(\.\.)\s*(\d*)\s*(?:/\s*(\d+)\s*)?)?")


@dataclass(frozen=True, slots=True)
class SizeRange:
    """Sizes from `low` to `high` (None: no limit), multiples of `divisor` (None: not said)."""

    low: int
    high: int | None
    divisor: int | None = None


def parse_shapes(texts: Iterable[str]) -> dict[str, int]:
    """Map from symbol to size, from `batch=1,seq=128`. Raises UsageError for another form and for a symbol given
    twice."""
    sizes: dict[str, int] = {}
    for symbol, size in parse_sizes(texts).items():
        if isinstance(size, SizeRange):
            message = f"--shape {symbol}={size.low}..{'' if size.high is None else size.high} binds no size"
            raise UsageError(message, hint=f"Write it like --shape {symbol}={size.low}: this command needs one size.")
        sizes[symbol] = size
    return sizes


def parse_size_sets(texts: Iterable[str]) -> list[dict[str, int]]:
    """Sets of sizes, at least one. A flag that gives a symbol again begins the next set, which keeps the other sizes.

    Raises what `parse_shapes` raises.
    """
    sets: list[dict[str, int]] = [{}]
    given: set[str] = set()
    for sizes in (parse_shapes([text]) for text in texts):
        if given & sizes.keys():
            sets.append({**sets[-1], **sizes})
            given = set(sizes)
        else:
            sets[-1].update(sizes)
            given |= sizes.keys()
    return sets


def parse_sizes(texts: Iterable[str], flag: str = "--shape") -> dict[str, int | SizeRange]:
    """Map from symbol to size or range, from `batch=1,seq=8..512/8` behind a flag. Raises UsageError for another form,
    for a range without a size and for a symbol given twice."""
    sizes: dict[str, int | SizeRange] = {}
    for symbol, size in _parts(texts, flag):
        if sizes.setdefault(symbol, size) != size:
            raise UsageError(
                f"{flag} binds {symbol} to {_text(sizes[symbol])} and to {_text(size)}",
                hint="Leave one of the two out.",
            )
    return sizes


def _parts(texts: Iterable[str], flag: str) -> Iterator[tuple[str, int | SizeRange]]:
    for part in (part for text in texts for part in text.split(",")):
        match = _PART.fullmatch(part)
        if match is None:
            raise UsageError(f"{flag} {part!r} does not bind a size", hint=EXAMPLE.format(flag=flag))
        symbol, low, dots, high, divisor = match.groups()
        yield symbol, int(low) if dots is None else _range(flag, part, int(low), high, divisor)


def _range(flag: str, part: str, low: int, high: str, divisor: str | None) -> SizeRange:
    result = SizeRange(low, int(high) if high else None, int(divisor) if divisor else None)
    step = 1 if result.divisor is None else result.divisor
    if step < 1:
        raise UsageError(f"{flag} {part!r} is divided by 0", hint=EXAMPLE.format(flag=flag))
    if result.high is not None and -(-low // step) * step > result.high:
        of = f" divisible by {step}" if step > 1 else ""
        hint = f"The smaller end comes first: {result.high}..{low}." if low > result.high else "Widen the range."
        raise UsageError(f"{flag} {part!r} holds no size{of}", hint=hint)
    return result


def _text(size: int | SizeRange) -> str:
    if isinstance(size, int):
        return str(size)
    ends = f"{size.low}..{'' if size.high is None else size.high}"
    return ends if size.divisor is None else f"{ends}/{size.divisor}"
