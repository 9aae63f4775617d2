"""Random graphs under random plans: compiled kernels compute what NumPy and the tile machine do."""

import contextlib

import hypothesis
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.codegen.cpu.running import AVX2, AVX512, NEON, Batch, close
from tests.random_graphs import Case
from tests.random_plans import cases
from tilec.ir.program import Program
from tilec.lower.checks.plan_errors import PlanError
from tilec.lower.lowering import lower
from tilec.machine import execute

TYPES = ("f32", "f64", "i32", "f16", "bf16", "i8", "u8", "i64")
TARGETS = (AVX512, AVX2, NEON)


def legal(count: int, strategy: st.SearchStrategy, seed: int) -> list[tuple[Case, Program]]:
    """`count` cases whose plans can be lowered."""
    found: list[tuple[Case, Program]] = []

    @hypothesis.seed(seed)
    @settings(
        max_examples=2 * count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def draw(case: Case) -> None:
        if len(found) < count:
            with contextlib.suppress(PlanError):
                found.append((case, lower(case.group, case.variant, case.plan)))

    draw()
    return found


def check(drawn: list[tuple[Case, Program]], folder) -> None:
    batch = Batch()
    for number, (case, program) in enumerate(drawn):
        batch.add(program, case.arrays(number), TARGETS[number % len(TARGETS)])
    for number, ((case, program), made) in enumerate(zip(drawn, batch.run(folder), strict=True)):
        arrays = case.arrays(number)
        wanted, reference = execute(program, arrays).outputs, case.reference(arrays)
        assert set(made) == set(wanted)
        for name, value in wanted.items():
            assert agree(made[name], np.asarray(value)), (name, case)
            if value.dtype.itemsize >= 4:
                assert agree(made[name], np.asarray(reference[name])), (name, case)


def agree(a: np.ndarray, b: np.ndarray) -> bool:
    """Up to the order of summation; in 16 bits the rounding of terms that cancel is larger than their sum."""
    if b.dtype.itemsize == 2 and b.dtype.kind not in "iu":
        wide, exact = a.astype(np.float64), b.astype(np.float64)
        return bool(
            np.allclose(wide, exact, rtol=2e-2, atol=2e-2 * max(1.0, np.abs(exact).max(initial=0)), equal_nan=True)
        )
    return close(a, b, 1e-4 if b.dtype.itemsize == 4 else None)


@pytest.mark.feature("W31")
def test_random_plans(tmp_path):
    check(legal(20, cases(operators=3), 0), tmp_path)


def test_random_types(tmp_path):
    check(legal(12, cases(TYPES, operators=3), 7), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_many_random_plans(part, tmp_path):
    check(legal(150, cases(TYPES), 100 + part), tmp_path)
