"""Formats of weights: elements of few bits with a scale and maybe a zero point for each group (Ladder, 3.1; L27).

    i4[128]*f16       codes i4, a scale of type f16 for every 128 along the reduction
    u4[32]*f16-u4     the same with zero points: (code - zero) * scale
    i8[column]        one scale (f32) for all that a result sums up
    mxfp4             a name for e2m1[32]*e8m0
    code<5 float: f32(i32(code)) * 0.5 - 7.0>[32]*f16
                      codes of a type of one's own

Codes, scales and zero points are tensors of their own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tilec.errors import did_you_mean
from tilec.ir.codes import check_decoding
from tilec.ir.types import TTYPES, is_float, is_ttype

NAMED = {
    "mxfp4": "e2m1[32]*e8m0",
    "mxfp6": "e3m2[32]*e8m0",
    "mxfp8": "e4m3fn[32]*e8m0",
    "nvfp4": "e2m1[16]*e4m3fn",
    "nf4": "nf4[64]*f32",
}
"""Names of formats."""

COLUMN = "column"

_TEXT = re.compile(r"(code<.+>|[a-z0-9]+)\[(column|[1-9][0-9]{0,5})\](?:\*([a-z0-9]+))?(?:-([a-z0-9]+))?")


@dataclass(frozen=True, slots=True)
class Format:
    """tTypes of elements, scales and zero points (empty: none). `group` elements along the reduction share a scale,
    None: all of them."""

    element: str
    group: int | None
    scale: str = "f32"
    zero: str = ""

    def __str__(self) -> str:
        zero = f"-{self.zero}" if self.zero else ""
        return f"{self.element}[{self.group or COLUMN}]*{self.scale}{zero}"


def parse_format(text: str) -> Format:
    """The format that a text or name describes. Raises ValueError that says what is wrong."""
    match = _TEXT.fullmatch(NAMED.get(text, text))
    if match is None:
        near = did_you_mean(text, NAMED)
        hint = f"did you mean {near}?" if near else f"it is written like i4[128]*f16, or is {', '.join(NAMED)}"
        raise ValueError(f"{text!r} is no format; {hint}")
    element, group, scale, zero = match.groups()
    for name in (element, scale, zero):
        if name is not None and not is_ttype(name):
            raise ValueError(f"{name!r} in {text!r} is no type; {', '.join(TTYPES)} are")
    if TTYPES[element].coded:
        check_decoding(element)
    if not _is_small(element):
        raise ValueError(f"{element} in {text!r} does not hold codes of at most 8 bits")
    if scale is not None and not is_float(scale):
        raise ValueError(f"scales of type {scale} in {text!r} are no floating-point numbers")
    if zero is not None and (is_float(element) or is_float(zero)):
        raise ValueError(f"zero points in {text!r} are for integers")
    return Format(element, None if group == COLUMN else int(group), scale or "f32", zero or "")


def _is_small(element: str) -> bool:
    ttype = TTYPES[element]
    return ttype.bits <= 8 and (ttype.coded or ttype.kind in ("int", "uint"))
