"""Codes of few bits are those of ml_dtypes, and conversions lose nothing exactly where it is said."""

import ml_dtypes
import numpy as np
import pytest

from tilec.ir.codes import decode_array, encode_array, is_lossless
from tilec.ir.types import TTYPES, has_numpy_dtype, numpy_dtype

CODED = [name for name, each in TTYPES.items() if each.coded]
KNOWN = [name for name in CODED if has_numpy_dtype(name)]


def numbers(seed: int) -> np.ndarray:
    """All magnitudes of f32: random bits, and every number of 16 bits with its neighbours."""
    halves = (np.arange(1 << 16, dtype=np.uint32) << 16)[:, None] + np.array([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF])
    random = np.random.default_rng(seed).integers(0, 1 << 32, 1 << 18)
    return np.concatenate([halves.ravel(), random]).astype(np.uint32).view(np.float32)


@pytest.mark.feature("L02", "L18")
@pytest.mark.parametrize("name", KNOWN)
def test_every_code_is_that_of_ml_dtypes(name: str) -> None:
    codes = np.arange(1 << TTYPES[name].bits, dtype=np.uint8)
    found = decode_array(name, codes)
    expected = codes.view(numpy_dtype(name)).astype(found.dtype)
    np.testing.assert_array_equal(found.view(np.uint32), expected.view(np.uint32))


@pytest.mark.feature("L12")
@pytest.mark.parametrize("name", KNOWN)
def test_numbers_are_rounded_as_by_ml_dtypes(name: str) -> None:
    x = numbers(1) if TTYPES[name].kind == "float" else np.arange(-(1 << 12), 1 << 12, dtype=np.int32)
    with np.errstate(all="ignore"):
        expected = x.astype(numpy_dtype(name)).view(np.uint8)
    np.testing.assert_array_equal(encode_array(name, x), expected)


@pytest.mark.parametrize("name", CODED)
def test_codes_survive_a_round_trip(name: str) -> None:
    if TTYPES[name].encode:
        numbers = decode_array(name, np.arange(1 << TTYPES[name].bits))
        np.testing.assert_array_equal(decode_array(name, encode_array(name, numbers)), numbers)


def test_the_table_of_nf4_and_the_bits_of_tf32() -> None:
    table = decode_array("nf4", np.arange(16))
    assert (np.diff(table) > 0).all()
    assert table[[0, 7, 15]].tolist() == [-1.0, 0.0, 1.0]
    bits = decode_array("tf32", np.array([0x1FC00, 0x40001])).view(np.uint32)
    assert bits.tolist() == [0x1FC00 << 13, 0x80002000]


@pytest.mark.feature("L02")
@pytest.mark.parametrize(
    ("source", "targets", "others"),
    [
        ("i4", "i8 i16 i32 f16 bf16 f32 e4m3fn e3m2", "u8 i3 u4 e2m1 e2m3 bool"),
        ("u4", "i8 u8 f16 e4m3fn", "i4 e2m3 e3m2"),
        ("e4m3fn", "f16 bf16 f32 f64 tf32", "e5m2 e4m3fnuz i32"),
        ("e5m2", "f16 bf16 f32", "e4m3fn e5m2fnuz"),
        ("e8m0", "bf16 f32 f64", "f16 e5m2"),
        ("e2m1", "e4m3fn e5m2 e2m3 e3m2 f16", "e4m3fnuz i4"),
        ("nf4", "f32 f64", "f16 bf16 e4m3fn"),
        ("f16", "f32 f64", "bf16 e5m2"),
        ("bf16", "f32 f64", "f16"),
        ("i16", "i32 f32", "f16 u32"),
        ("u16", "i32 u32 f32", "i16"),
        ("i32", "i64 f64", "f32 u64"),
        ("f32", "f64", "tf32 f16 i64"),
        ("tf32", "f32 f64", "f16"),
    ],
)
def test_a_conversion_is_lossless_when_every_number_survives(source: str, targets: str, others: str) -> None:
    assert [name for name in targets.split() if not is_lossless(source, name)] == []
    assert [name for name in others.split() if is_lossless(source, name)] == []


def test_floats_that_differ_in_one_bit_stay_apart() -> None:
    assert decode_array("e5m2", np.array([0x3D, 0x3E, 0x3F])).tolist() == [1.25, 1.5, 1.75]
    assert ml_dtypes.finfo(ml_dtypes.float8_e5m2).max == TTYPES["e5m2"].maximum
