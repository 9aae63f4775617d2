"""One tile in TIR: what a sum adds up does not depend on how it is cut."""

from pathlib import Path

import numpy as np
import pytest

from tests.codegen.cpu.patterns import GUARD
from tests.codegen.cpu.running import AVX2, AVX512, Array, Batch
from tests.lower.cases import Case
from tilec.codegen.cpu.target import CpuTarget

SIZE, HALF = 32, 16


def gated() -> Case:
    """A padded depthwise convolution, whose halves are multiplied: the last task of 6 rows overlaps the one before."""
    guarded = GUARD.format(n=SIZE, x="h + r - 1, w + s - 1, c", fill="0.0")
    return Case(
        [
            f"P[h, w, c] = sum(r, s, {guarded} * D[c // 16, r, s, c % 16])",
            "C[h, w, c] = P[h, w, c] + B[c]",
            f"Y[h, w, j] = C[h, w, j] * C[h, w, j + {HALF}]",
        ],
        {"h": SIZE, "w": SIZE, "c": 2 * HALF, "r": 3, "s": 3, "j": HALF},
        {"X": (SIZE, SIZE, 2 * HALF), "D": (2 * HALF // 16, 3, 3, 16), "B": (2 * HALF,)},
        {"l2": {"Y": {"h": 6}}, "reg": {"C": {"h": 6, "w": 4, "c": 16}, "Y": {"h": 1, "w": 2}}},
        connect={"P->C": "reg"},
        more={"order": {"l2": {"Y": ("h",)}, "reg": {"C": ("c", "h", "w"), "Y": ("h", "w")}}, "loads": {"X": ()}},
    )


def fused(x: Array, d: Array, b: Array) -> Array:
    """The same with every product added by one multiply-add, in order."""
    padded = np.zeros((SIZE + 2, SIZE + 2, 2 * HALF))
    padded[1:-1, 1:-1] = x
    weights = d.transpose(1, 2, 0, 3).reshape(3, 3, 2 * HALF).astype(np.float64)
    total = np.zeros((SIZE, SIZE, 2 * HALF), np.float32)
    for r in range(3):
        for s in range(3):
            total = (padded[r : r + SIZE, s : s + SIZE] * weights[r, s] + total).astype(np.float32)
    total += b
    return total[..., :HALF] * total[..., HALF:]


@pytest.mark.parametrize("target", [AVX512, AVX2], ids=["avx512", "avx2"])
def test_every_cut_adds_products_in_the_same_way(target: CpuTarget, tmp_path: Path) -> None:
    """So tasks that overlap write the same bits, whichever comes last."""
    rng = np.random.default_rng(0)
    case, batch = gated(), Batch()
    arrays = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in case.inputs.items()}  # type: ignore[arg-type]
    batch.add(case.program(), arrays, target)
    ((made,),) = (outputs.values() for outputs in batch.run(tmp_path))
    np.testing.assert_array_equal(made, fused(arrays["X"], arrays["D"], arrays["B"]))
