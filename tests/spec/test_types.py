"""Types of elements in files: what comes with tilec, what a recipe makes of a name, and what is refused."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tilec.errors import ConfigError
from tilec.ir.codes import decode_array
from tilec.spec.effective import recipe_without_device
from tilec.spec.resolve import packaged
from tilec.spec.types import resolve_type

HALVES = """kind: type
description: halves from -7 to 8.5
bits: 5
numbers: float
decode: >-
  f32(i32(code))
  * 0.5 - 7.0
group: 32
scale: f16
"""
ELEMENT = "code<5 float: f32(i32(code)) * 0.5 - 7.0>"


def formats(folder: Path, types: str) -> dict[str, str]:
    """What a recipe in a folder says of weights."""
    (folder / "half5.yaml").write_text(HALVES)
    (folder / "r.yaml").write_text(f"types:\n{types}")
    return recipe_without_device(str(folder / "r.yaml"), {}, {}).types


@pytest.mark.feature("L02", "L25")
def test_a_recipe_names_a_type_file(tmp_path: Path) -> None:
    found = formats(tmp_path, '  a: half5.yaml\n  b: half5.yaml[64]*f32\n  c: ternary\n  "*": keep\n')
    assert found == {
        "a": f"{ELEMENT}[32]*f16",
        "b": f"{ELEMENT}[64]*f32",
        "c": "code<2 int: minimum(i32(code), 2) - 1>[column]*f32",
        "*": "keep",
    }


@pytest.mark.parametrize("name", sorted(packaged("types")))
def test_the_types_that_come_with_tilec(name: str) -> None:
    spec = resolve_type(name)
    numbers = decode_array(spec.element, np.arange(1 << spec.bits))
    if name == "e3m1":  # bits and bias are those of the first five bits of a type of ml_dtypes
        wider = np.arange(0, 256, 8, np.uint8).view(ml_dtypes.float8_e3m4).astype(np.float32)
        finite = np.isfinite(wider)
        np.testing.assert_array_equal(numbers[finite], wider[finite])
        assert np.abs(numbers[~finite]).tolist() == [16, 24] * 2
    else:
        assert (
            numbers.tolist()
            == {
                "log4": [2.0**k for k in range(8)] + [-(2.0**k) for k in range(8)],
                "ternary": [-1, 0, 1, 1],
            }[name]
        )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("f32(i32(code))", "i32(code)"), r"half5.yaml:5:9: the expression is wrong: i32 meets weak float"),
        (("f32(i32(code))", "f32(x)"), "x is unknown"),
        (("bits: 5", "bits: 9"), r"half5.yaml:3:7: expected less than or equal to 8"),
        (("scale: f16", "scale: i8"), "scales of type i8"),
        (("scale: f16", "scale: f16\nzero: u8"), "zero points in"),
    ],
)
def test_what_is_no_type(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    (tmp_path / "half5.yaml").write_text(HALVES.replace(*change))
    (tmp_path / "r.yaml").write_text('types:\n  "*": half5.yaml\n')
    with pytest.raises(ConfigError, match=message):
        recipe_without_device(str(tmp_path / "r.yaml"), {}, {})


def test_a_type_file_that_is_missing_has_a_place(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"r.yaml:3:6: .*no such file"):
        formats(tmp_path, "  a: keep\n  b: quarter.yaml\n")
