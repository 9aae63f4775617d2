"""Random graphs under random plans: the verifier accepts, the machine computes what NumPy does; mistakes are found."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.examples import SLOW, examples
from tests.mutations import mistakes
from tests.random_graphs import Case
from tests.random_plans import cases
from tilec.ir.expr import Const, operands
from tilec.ir.program import Program
from tilec.ir.program_codec import program_from_json, program_to_json
from tilec.ir.reads import is_gathered
from tilec.ir.verify.graph import check_graph
from tilec.ir.verify.program import check_program
from tilec.lower.checks.plan_errors import PlanError
from tilec.lower.counts.footprint import footprint
from tilec.lower.counts.traffic import traffic
from tilec.lower.lowering import lower
from tilec.machine import MachineError, Result, execute

LONG = settings(max_examples=4000, deadline=None, suppress_health_check=SLOW)


def lowered(case: Case) -> Program:
    """The program of a plan that is legal."""
    try:
        return lower(case.group, case.variant, case.plan)
    except PlanError:
        assume(False)
        raise


def agrees(result: Result, reference: dict[str, np.ndarray]) -> bool:
    """Whether all outputs are those of NumPy, up to the order of summation."""

    def close(a: np.ndarray, b: np.ndarray) -> bool:
        return np.allclose(a, b, rtol=1e-4, atol=1e-4 * max(1, np.abs(b).max(initial=0)), equal_nan=True)

    return all(close(value, reference[name]) for name, value in result.outputs.items())


def moved_as_planned(case: Case, program: Program, result: Result) -> None:
    """Bytes equal the planned ones; what data index and is read in place stays below them."""
    planned = traffic(program)
    if any(is_gathered(node.expr, tensor) for node in case.graph.nodes for tensor in operands(node.expr)):
        assert {level: moved.written for level, moved in result.moved.items()} == {
            level: moved.written for level, moved in planned.items()
        }
        assert all(moved.read <= planned[level].read for level, moved in result.moved.items())
    else:
        assert result.moved == planned


def check(case: Case) -> None:
    assert check_graph(case.graph) == ()
    program = lowered(case)
    assert check_program(program, case.shapes) == ()
    assert program_from_json(program_to_json(program)) == program
    arrays = case.arrays()
    result = execute(program, arrays)
    assert set(result.outputs) == set(case.group.outputs)
    assert agrees(result, case.reference(arrays))
    moved_as_planned(case, program, result)
    assert result.peak == {level: size.value for level, size in footprint(program).items() if isinstance(size, Const)}


@pytest.mark.feature("W07", "W08", "W31")
@examples(24, seed=5)
@given(cases())
def test_random_plans(case: Case) -> None:
    check(case)


@pytest.mark.slow
@LONG
@given(cases())
def test_many_random_plans(case: Case) -> None:
    check(case)


def check_mistake(case: Case, data: st.DataObject) -> None:
    """What the verifier lets pass runs on the machine and computes the same."""
    program = lowered(case)
    assume(program.body)
    wrong = data.draw(mistakes(program))
    if check_program(wrong, case.shapes):
        return
    arrays = case.arrays()
    try:
        result = execute(wrong, arrays)
    except MachineError as error:
        pytest.fail(f"accepted by the verifier, refused by the machine: {error}")
    assert agrees(result, case.reference(arrays))


@examples(100, seed=5)
@given(cases(operators=3), st.data())
def test_random_mistakes(case: Case, data: st.DataObject) -> None:
    check_mistake(case, data)


@pytest.mark.slow
@LONG
@given(cases(operators=3), st.data())
def test_many_random_mistakes(case: Case, data: st.DataObject) -> None:
    check_mistake(case, data)
