"""Formats as text."""

import re

import pytest

from tilec.ir.formats import NAMED, Format, parse_format


@pytest.mark.feature("L02", "L27")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i4[128]*f16", Format("i4", 128, "f16")),
        ("u4[32]*f16-u4", Format("u4", 32, "f16", "u4")),
        ("i8[column]", Format("i8", None, "f32")),
        ("mxfp4", Format("e2m1", 32, "e8m0")),
        ("nf4", Format("nf4", 64, "f32")),
        ("u5[column]*bf16-u8", Format("u5", None, "bf16", "u8")),
    ],
)
def test_a_format_is_read_and_written(text: str, expected: Format) -> None:
    assert parse_format(text) == expected
    assert parse_format(str(expected)) == expected
    assert str(expected) == text or text in (*NAMED, "i8[column]")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("i4_g128", "is no format; it is written like i4[128]*f16"),
        ("mxpf4", "did you mean mxfp4?"),
        ("i4[0]", "is no format"),
        ("i9[8]", "'i9' in 'i9[8]' is no type"),
        ("f16[32]", "f16 in 'f16[32]' does not hold codes"),
        ("i4[32]*i8", "scales of type i8"),
        ("e2m1[32]*f16-u4", "zero points in"),
        ("u4[32]*f16-f16", "zero points in"),
    ],
)
def test_what_is_no_format(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        parse_format(text)
