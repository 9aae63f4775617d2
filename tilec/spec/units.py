"""Quantities with units, as device and recipe files write them: `164KiB`, `2039GB/s`, `312TFLOP/s`, `1.2us`, `3.7pJ`.

Held as integers: bytes, bytes per second, operations per second (a multiply-add is two), picoseconds, femtojoules.
"""

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tilec.errors import did_you_mean

_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*(\S*)", re.IGNORECASE)


LARGEST = (1 << 63) - 1
"""Quantities beyond are refused."""


@dataclass(frozen=True)
class Unit:
    """A family of units: what it measures, an example, and the integer each suffix stands for."""

    measures: str
    example: str
    factors: dict[str, int]

    def parse(self, value: Any) -> int:
        """The integer that `value` stands for, without the fraction that a rounded number such as `64.03MiB` leaves.
        Raises ValueError that says what was expected."""
        if not isinstance(value, str):
            raise ValueError(f"{value} has no unit; write {self.measures} as {self.example!r}")
        match = _QUANTITY.fullmatch(value.strip())
        if not match:
            raise ValueError(f"{value!r} is not a number with a unit; write {self.measures} as {self.example!r}")
        if len(match[1]) > 40 or abs(int(match[1].lower().partition("e")[2] or 0)) > 40:
            raise ValueError(f"{value[:40]!r} is beyond every size")
        number, suffix = Fraction(match[1]), match[2]
        if suffix not in self.factors:
            problem = f"has the unit {suffix!r}" if suffix else "has no unit"
            near = did_you_mean(suffix, self.factors) if suffix else None
            instead = f"did you mean {near!r}?" if near else f"write {self.measures} as {self.example!r}"
            raise ValueError(f"{value!r} {problem}; {instead}")
        if number < 0:
            raise ValueError(f"{value!r} is negative; {self.measures} cannot be")
        scaled = number * self.factors[suffix]
        if scaled.denominator != 1 and self.factors[suffix] == min(self.factors.values()):
            smallest = min(self.factors, key=lambda name: self.factors[name])
            raise ValueError(f"{value!r} is not a whole number of {smallest}")
        if scaled > LARGEST:
            raise ValueError(f"{value!r} is beyond every size")
        return int(scaled)

    def format(self, value: int) -> str:
        """The shortest exact text of `value`; `parse` gives `value` back."""
        # Of suffixes that mean the same (FLOP/s, OP/s) the first is written.
        suffixes = {factor: suffix for suffix, factor in reversed(self.factors.items())}
        texts = [
            f"{_decimal(Fraction(value, factor))}{suffix}"
            for factor, suffix in suffixes.items()
            if 10**6 * value % factor == 0
        ]
        return min(texts, key=len)


def _decimal(number: Fraction) -> str:
    """`number`, which has at most six decimals, without trailing zeros."""
    whole, rest = divmod(int(number * 10**6), 10**6)
    return f"{whole}.{rest:06d}".rstrip("0").rstrip(".")


_BINARY = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_DECIMAL = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_SIZES = {"B": 1, **_BINARY, **_DECIMAL}
_PREFIXES = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}

BYTES = Unit("bytes", "164KiB", _SIZES)
BANDWIDTH = Unit("a bandwidth", "2039GB/s", {f"{name}/s": factor for name, factor in _SIZES.items()})
RATE = Unit(
    "a compute rate",
    "312TFLOP/s",
    {f"{prefix}{op}/s": factor for op in ("FLOP", "OP") for prefix, factor in _PREFIXES.items()},
)
ENERGY = Unit("an energy", "3.7pJ", {"fJ": 1, "pJ": 10**3, "nJ": 10**6})
TIME = Unit("a time", "1.2us", {"ps": 1, "ns": 10**3, "us": 10**6, "µs": 10**6, "ms": 10**9, "s": 10**12})
