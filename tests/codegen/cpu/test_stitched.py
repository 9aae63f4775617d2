"""Stitched groups run as their plan says: intermediates in the thread's scratch, sizes that no tile divides."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.codegen.cpu.patterns import attention, depthwise_pointwise, layer_norm_matmul, sliced_products
from tests.codegen.cpu.running import AVX2, AVX512, NEON, Batch, close
from tests.lower.cases import CASES, DRAM, L2, MLP, REG, Case
from tests.lower.shared import SHARED
from tilec.codegen.cpu.emit.emit_kernel import emit
from tilec.ir.lifetimes import statements
from tilec.ir.plan import PlanLevel
from tilec.ir.program import Allocate
from tilec.ir.program_text import program_text

L1 = PlanLevel("l1", None, 1, "implicit")


def rows_inside(case: Case, final: str, rows: int) -> Case:
    """The case with its edges connected one level further up, where tiles of some rows run one after another; what is
    loaded stays at the core's level."""
    loaded = dict.fromkeys(case.inputs, ("l2",))
    edges = case.plan().groups[0].connect
    return replace(
        case,
        levels=(DRAM, L2, L1, REG),
        tiles={**case.tiles, "l2": {final: {"b": 1}}, "l1": {final: {"m": rows}}},
        connect={edge: "l1" if level == "l2" else level for edge, level in edges.items()},
        more={**case.more, "loads": loaded},
    )


def merged_heads() -> Case:
    """Attention over heads that lie side by side in rows of 12, its result merged back in registers."""
    heads = attention(layout=True)
    return replace(
        heads,
        texts=[
            "S[b, m, n] = sum(k, Q[m, b * 4 + k] * K[n, b * 4 + k] * 0.5)",
            *heads.texts[1:4],
            "O[b, m, d] = sum(n, E[b, m, n] * V[n, b * 4 + d])",
            "R[b, m, d] = O[b, m, d] / Z[b, m]",
            "Y[m, c] = R[c // 4, m, c % 4]",
        ],
        extents={"b": 3, "m": 11, "k": 4, "n": 13, "d": 4, "c": 12},
        inputs={"Q": (11, 12), "K": (13, 12), "V": (13, 12)},
        tiles={"l2": {"Y": {"c": 4}}, "reg": {"S": {"m": 3}, "E": {"m": 2}, "Y": {"m": 3}}},
        connect={"O->R": "reg", "R->Y": "reg"},
        more={"layouts": {"l2": {"K": (1, 0)}}},
    )


PATTERNS = {
    "attention": attention(layout=True),
    "attention, rows inside a head": rows_inside(attention(layout=True), "R", 4),
    "attention, heads merged": merged_heads(),
    "normalisation and matmul": layer_norm_matmul(),
    "depthwise and pointwise": depthwise_pointwise(),
    "depthwise and pointwise, not staged": replace(
        depthwise_pointwise(), more={"loads": {"X": (), "D": ("l2",), "W": ("l2",)}}
    ),
    "softmax": CASES["softmax"],
    "hidden layer": MLP,
    "products of slices": sliced_products(),
    "convolution and pooling": CASES["convolution, ReLU and pooling with halo"],
}


@pytest.mark.feature("W33", "W34", "B17")
def test_stitched_groups(tmp_path: Path) -> None:
    """Right for vectors of three widths, by turns; the same bits with two threads as with one."""
    batch = Batch()
    targets = (AVX512, AVX2, NEON)
    jobs = [(name, case, targets[n % len(targets)]) for n, (name, case) in enumerate(PATTERNS.items())]
    for number, (_, case, target) in enumerate(jobs):
        batch.add(case.program(), case.arrays(number), target)
    one, two = batch.run(tmp_path, threads=1), batch.run(tmp_path, threads=2)
    for number, (name, case, _) in enumerate(jobs):
        reference = case.reference(case.arrays(number))
        for output, value in one[number].items():
            assert close(value, reference[output].astype(np.float32)), name
            assert np.array_equal(value, two[number][output]), name


@pytest.mark.slow
def test_everything_that_lowering_writes_runs(tmp_path: Path) -> None:
    """Any levels and units, reductions that share a loop and rescale; a stored output in another order is left out."""
    cases = {name: case for name, case in {**CASES, **SHARED}.items() if name != "layouts and copies"}
    batch = Batch()
    for number, case in enumerate(cases.values()):
        batch.add(case.program(), case.arrays(number))
    for number, ((name, case), made) in enumerate(zip(cases.items(), batch.run(tmp_path), strict=True)):
        reference = case.reference(case.arrays(number))
        for output, value in made.items():
            assert close(value, reference[output].astype(np.float32), 1e-4), name


@pytest.mark.feature("W33", "A11")
@pytest.mark.parametrize("name", PATTERNS)
def test_intermediates_stay_in_scratch(name: str) -> None:
    """One kernel reads the inputs and writes the output; what lies between has a place only in the thread's scratch."""
    case = PATTERNS[name]
    program = case.program()
    kernel = emit(program, AVX512)
    assert {p.tensor for p in program.parameters} == {*case.inputs, *program.outputs}
    held = [s.buffer for s in statements(program.body) if isinstance(s, Allocate)]
    between = [b for b in held if b.tensor not in {*case.inputs, *program.outputs}]
    assert {b.level for b in between} & {"l2", "l1"}
    assert "dram" not in {b.level for b in between}
    assert kernel.scratch_bytes > 0


@pytest.mark.parametrize("stripe", [2, 3, 64])
def test_tasks_run_in_the_order_of_the_raster(tmp_path: Path, stripe: int) -> None:
    """A kernel whose tasks go through stripes, the last one narrower, computes every tile once."""
    case = Case(
        ["C[m, n] = sum(k, A[m, k] * B[k, n])"],
        {"m": 37, "n": 45, "k": 12},
        {"A": (37, 12), "B": (12, 45)},
        {"l2": {"C": {"m": 5, "n": 8}}},
        more={"order": {"l2": {"C": ("m", "n")}}, "raster": {"l2": {"C": stripe}}},
    )
    program = case.program()
    assert f"in stripes of {stripe}:" in program_text(program)
    batch = Batch()
    arrays = case.arrays(0)
    kernel = batch.add(program, arrays, AVX512)
    assert kernel.tasks == 8 * 6
    (found,) = batch.run(tmp_path, threads=2)
    assert close(found["C"], case.reference(arrays)["C"].astype(np.float32))
