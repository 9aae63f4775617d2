"""Rounding of float weights to a format: a scale for each group by its largest magnitude, codes to the nearest even."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilec.ir.codes import decode_array, encode_array
from tilec.ir.formats import Format
from tilec.ir.types import TTYPES, numpy_dtype

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Quantised:
    """Codes in the shape of the weight (values of a plain type), scales and zero points with an entry for each group
    along the axis, and the `numbers` that they stand for."""

    codes: Array
    scales: Array
    zeros: Array | None
    numbers: Array


def quantise(weight: Array, kind: Format, axis: int) -> Quantised:
    """The weight in the format `kind` whose groups lie along an axis. NaN becomes whatever the type has for it."""
    group = kind.group or max(1, weight.shape[axis])
    wide = np.moveaxis(weight.astype(np.float32), axis, -1)
    groups = -(-wide.shape[-1] // group)
    padded = np.pad(wide, [(0, 0)] * (wide.ndim - 1) + [(0, groups * group - wide.shape[-1])], mode="constant")
    split = padded.reshape(*wide.shape[:-1], groups, group)
    scales, zeros = _scales(split, kind)
    divisor = _or_one(_numbers(kind.scale, scales))[..., None]
    shift = 0 if zeros is None else _numbers(kind.zero, zeros)[..., None]
    codes = _codes(kind.element, split / divisor + shift)
    numbers = (_numbers(kind.element, codes) - shift) * divisor
    return Quantised(
        _folded(codes, wide.shape[-1], axis),
        np.moveaxis(scales, -1, axis),
        None if zeros is None else np.moveaxis(zeros, -1, axis),
        _folded(numbers, wide.shape[-1], axis).astype(np.float32),
    )


def _folded(split: Array, length: int, axis: int) -> Array:
    """Groups `[..., g, n]` as one dimension of `length` at the axis."""
    return np.moveaxis(split.reshape(*split.shape[:-2], -1)[..., :length], -1, axis)


def _scales(split: Array, kind: Format) -> tuple[Array, Array | None]:
    """Scales and zero points of groups `[..., g, n]`, as codes of their types."""
    if not kind.zero:
        largest = np.abs(split).max(-1, initial=0)
        scales = _or_one(largest / np.float32(_most(kind.element)))
        return _codes(kind.scale, _power_of_two(scales) if kind.scale == "e8m0" else scales), None
    low, high = split.min(-1, initial=0), split.max(-1, initial=0)
    least = _least(kind.element)
    steps = _greatest(kind.element) - least
    scales = _codes(kind.scale, _or_one((high - low) / np.float32(steps)))
    return scales, _codes(kind.zero, least - low / _or_one(_numbers(kind.scale, scales)))


def _or_one(scales: Array) -> Array:
    """Scales, 1 for those of groups of zeros and for those too small for their type."""
    return np.where(scales == 0, np.float32(1), scales)


def _power_of_two(scales: Array) -> Array:
    """The least powers of two that are no smaller, so that no element is beyond the range."""
    return np.exp2(np.ceil(np.log2(scales))).astype(np.float32)


def _is_table(ttype: str) -> bool:
    """Whether only the numbers of the codes say what a type holds."""
    return TTYPES[ttype].coded and not TTYPES[ttype].encode


def _least(ttype: str) -> float:
    """The least integer of a type."""
    if _is_table(ttype):
        return float(_table(ttype)[1][0])
    return -float(1 << (TTYPES[ttype].bits - 1)) if TTYPES[ttype].kind == "int" else 0.0


def _greatest(ttype: str) -> float:
    """The largest integer of a type."""
    if _is_table(ttype):
        return float(_table(ttype)[1][-1])
    return float((1 << (TTYPES[ttype].bits - (TTYPES[ttype].kind == "int"))) - 1)


def _most(ttype: str) -> float:
    """The largest number that both signs have; of unsigned integers the largest."""
    t = TTYPES[ttype]
    if _is_table(ttype):
        _, table = _table(ttype)
        return float(min(table[-1], -table[0]) if table[0] < 0 < table[-1] else np.abs(table).max()) or 1.0
    return t.maximum if t.kind == "float" else _greatest(ttype) or 1.0


def _codes(ttype: str, numbers: Array) -> Array:
    """Numbers rounded to a type, the nearest even, within its range."""
    t = TTYPES[ttype]
    if not t.coded and t.kind == "float":
        return numbers.astype(numpy_dtype(ttype))
    if t.kind != "float" and not _is_table(ttype):
        whole = np.clip(np.rint(numbers), _least(ttype), _greatest(ttype))
        return whole.astype(numpy_dtype(ttype)) if not t.coded else encode_array(ttype, whole.astype(np.int32))
    if t.encode:
        limited = numbers if ttype == "e8m0" else np.clip(numbers, -t.maximum, t.maximum)
        return encode_array(ttype, limited.astype(np.float32))
    codes, table = _table(ttype)
    middles = np.append((table[1:] + table[:-1]) / 2, np.nan)
    place = np.searchsorted(middles, numbers)
    odd = (numbers == middles[place]) & (codes[place] % 2 == 1)
    chosen: Array = codes[place + odd].astype(np.uint32)
    return chosen


def _table(ttype: str) -> tuple[Array, Array]:
    """The codes of a type whose numbers are finite, and those numbers, in ascending order."""
    numbers = decode_array(ttype, np.arange(1 << TTYPES[ttype].bits, dtype=np.uint32))
    order = np.argsort(numbers, kind="stable")
    order = order[np.isfinite(numbers[order])]
    return order, numbers[order].astype(np.float64)


def _numbers(ttype: str, codes: Array) -> Array:
    """The f32 numbers of codes, or of values of a plain type."""
    numbers = decode_array(ttype, codes) if TTYPES[ttype].coded else codes
    return numbers.astype(np.float32)
