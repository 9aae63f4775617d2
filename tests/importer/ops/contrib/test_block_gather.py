"""GatherBlockQuantized against onnxruntime: packed and native elements, blocks that do not divide, indices outside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.importer.ops.contrib.test_contrib import U8, Arrays, contrib, integers, model
from tests.importer.reference import normal
from tilec.errors import ConfigError
from tilec.importer import import_model

INDICES = np.array([[4, -1, 0], [-5, 5, -6]], np.int64)  # the last two lie outside a table of five


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("shape", [(5, 40), (5, 3, 64), (5, 2, 2, 24)])
def test_rows_packed_into_bytes(tmp_path: Path, bits: int, zeros: bool, shape: tuple[int, ...]) -> None:
    per_byte, blocks = 8 // bits, -(-shape[-1] // 16)
    packed = integers(U8, *shape[:-1], shape[-1] // per_byte)
    scales = np.abs(normal(*shape[:-1], blocks))
    points = integers(U8, *shape[:-1], -(-blocks // per_byte), seed=1) if zeros else None
    options = {"bits": bits, "block_size": 16, "quantize_axis": -1}
    arrays: Arrays = [packed, INDICES, scales, points]
    for kind in (np.int64, np.int32):
        arrays[1] = INDICES.astype(kind)
        (taken,) = contrib(tmp_path, "GatherBlockQuantized", arrays, known=(0, 2, 3), atol=0, **options)
        assert not taken[1, 1:].any()


@pytest.mark.parametrize("kind", ["int4", "uint4", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"])
@pytest.mark.parametrize(("gather", "along"), [(0, 1), (1, -1), (-1, 0), (1, 1)])
def test_elements_of_few_bits(tmp_path: Path, kind: str, gather: int, along: int) -> None:
    floats, shape = kind.startswith("float"), [5, 5, 5]
    shape[along] = 40 if along != gather else 33
    data = np.random.default_rng(0).integers(-8 if kind == "int4" else 0, 8, shape).astype(getattr(ml_dtypes, kind))
    parts = [1 if floats and d != along else n for d, n in enumerate(shape)]
    parts[along] = -(-shape[along] // 16)
    points = None if floats else (normal(*parts) > 0).astype(data.dtype)
    for zeros in (None, points):
        arrays: Arrays = [data, INDICES[1], np.abs(normal(*parts)), zeros]
        options = {"gather_axis": gather, "quantize_axis": along, "block_size": 16}
        contrib(tmp_path, "GatherBlockQuantized", arrays, known=(0, 2, 3), atol=0, **options)


def test_one_block_of_floats_and_results_in_half_precision(tmp_path: Path) -> None:
    data = normal(5, 40).astype(ml_dtypes.float8_e4m3fn)
    arrays: Arrays = [data, INDICES, np.abs(normal(1, 1)).astype(np.float16)]
    contrib(tmp_path, "GatherBlockQuantized", arrays, known=(0, 2), atol=0, block_size=0)


@pytest.mark.parametrize(
    ("scales", "options", "message"),
    [
        ((5, 3), {"block_size": 16}, r"scales or zero points \[5, 3\]"),
        ((5,), {"block_size": 16}, r"scales or zero points \[5\]"),
        ((5, 2), {"block_size": -16}, "blocks of -16"),
        ((5, 2), {"block_size": 16, "gather_axis": 1}, "gathered along 1"),
    ],
)
def test_tables_that_do_not_fit(tmp_path: Path, scales: tuple[int, ...], options: dict[str, Any], message: str) -> None:
    arrays: list[NDArray[Any] | None] = [integers(U8, 5, 16), INDICES, normal(*scales)]
    path, _ = model(tmp_path, "GatherBlockQuantized", arrays, 1, (0, 2), **options)
    with pytest.raises(ConfigError, match=message):
        import_model(path)
