"""Half precision that stays inside a group as f32: nothing is rounded on the way, but for casts."""

from dataclasses import replace

import numpy as np
import pytest

from tests.lower.cases import GPU, Case
from tilec.ir.expr import Const
from tilec.ir.lifetimes import statements
from tilec.ir.program import Allocate
from tilec.ir.text import parse_tensor, tensor_text
from tilec.ir.verify.program import check_program
from tilec.lower.checks.plan_errors import PlanError
from tilec.lower.counts.footprint import footprint
from tilec.lower.counts.traffic import traffic
from tilec.lower.lowering import lower
from tilec.lower.promote_halves import promote_halves
from tilec.machine import Result, execute

TTYPES = {"X": "f16", "V": "f16", "P": "f16", "D": "f16", "I": "i64", "F": "f32"}
SIZES = {"s": 4, "t": 6, "d": 3}
CHAIN = Case(
    ["P[s, t] = X[s, t] * X[s, t]", "D[s] = max(t, P[s, t])", "O[s] = D[s] / 256.0"],
    {"s": 10, "t": 6},
    {"X": (10, 6)},
    {"l2": {"O": {"s": 4}}, "reg": {"P": {"s": 2}, "D": {"s": 2}}},
    ttypes=dict.fromkeys("XPDO", "f16"),
    more={"held": {"l2": {"P": "f32", "D": "f32"}}},
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Y[s] = X[s, 0] + D[s]", "Y[s] = X[s, 0] + D[s]"),
        ("P[s, t] = X[s, t] / D[s]", "P[s, t] = f32(X[s, t]) / f32(D[s])"),
        ("P[s, t] = exp(F[s]) / F[t]", "P[s, t] = exp(F[s]) / F[t]"),
        ("O[s, d] = sum(t, P[s, t] * V[t, d])", "O[s, d] = sum(t, P[s, t] * f32(V[t, d]))"),
        (
            "O[s, d] = sum(t, P[s, t] * where(t >= 1, V[t - 1, d], 0.0))",
            "O[s, d] = sum(t, P[s, t] * f32(where(t >= 1, V[t - 1, d], 0.0)))",
        ),
        ("O[s] = where(P[s, 0] < X[s, 0], P[s, 0], 1.0)", "O[s] = where(P[s, 0] < f32(X[s, 0]), P[s, 0], 1.0)"),
        ("O[s] = f32(P[s, 0]) + F[s]", "O[s] = P[s, 0] + F[s]"),
        ("O[s] = f32(f16(P[s, 0] * 2.0)) + F[s]", "O[s] = f32(f16(P[s, 0] * 2.0)) + F[s]"),
        ("O[s] = f16(P[s, 0]) + X[s, 0]", "O[s] = f32(f16(P[s, 0])) + f32(X[s, 0])"),
        ("O[s] = bits_u16(P[s, 0])", "O[s] = bits_u16(f16(P[s, 0]))"),
        ("O[s] = X[i64(P[s, 0]), 0] * P[s, 0]", "O[s] = f32(X[i64(P[s, 0]), 0]) * P[s, 0]"),
    ],
)
def test_what_meets_a_wide_tensor_is_widened(text: str, expected: str) -> None:
    assert tensor_text(promote_halves(parse_tensor(text, SIZES), ("P",), TTYPES)) == expected


def measured(case: Case, value: float) -> Result:
    """The case on the tile machine, its bytes as planned."""
    plan, program = case.plan(), case.program()
    assert check_program(program, {name: tensor.shape for name, tensor in plan.tensors.items()}) == ()
    result = execute(program, {"X": np.full((10, 6), value, np.float16)})
    assert traffic(program, {}) == dict(result.moved)
    assert footprint(program) == {level: Const(size) for level, size in result.peak.items()}
    return result


@pytest.mark.feature("L05")
def test_nothing_overflows_before_it_leaves_the_group() -> None:
    narrow = replace(CHAIN, more={})
    assert np.all(measured(CHAIN, 400.0).outputs["O"] == 625)
    assert np.all(np.isinf(measured(narrow, 400.0).outputs["O"]))


def test_what_leaves_is_rounded_to_its_own_type() -> None:
    found = measured(CHAIN, 6e4).outputs["O"]
    assert found.dtype == np.float16
    assert np.all(np.isinf(found))


def test_a_cast_rounds_inside_the_group() -> None:
    cast = replace(CHAIN, texts=["P[s, t] = f16(f32(X[s, t]) * 400.0)", *CHAIN.texts[1:]])
    assert np.all(np.isinf(measured(cast, 400.0).outputs["O"]))


@pytest.mark.feature("L05")
def test_wide_tensors_take_four_bytes_and_what_leaves_two() -> None:
    held = [s.buffer for s in statements(CHAIN.program().body) if isinstance(s, Allocate)]
    assert {b.tensor: b.ttype for b in held} == {"X": "f16", "P": "f32", "D": "f32", "O": "f16"}
    narrow, wide = measured(replace(CHAIN, more={}), 1.0), measured(CHAIN, 1.0)
    assert wide.moved["l2"] == narrow.moved["l2"]
    assert wide.peak["l2"] > narrow.peak["l2"]


@pytest.mark.feature("L05", "L08")
def test_an_operand_is_converted_by_the_load_at_its_level() -> None:
    case = replace(CHAIN, more={"held": {"l2": {"X": "f32"}}})
    held = [s.buffer for s in statements(case.program().body) if isinstance(s, Allocate)]
    assert {b.tensor: b.ttype for b in held} == {"X": "f32", "P": "f16", "D": "f16", "O": "f16"}
    narrow, wide = measured(replace(CHAIN, more={}), 3.0), measured(case, 3.0)
    assert np.array_equal(wide.outputs["O"], narrow.outputs["O"])
    assert wide.moved["l2"] == narrow.moved["l2"], "what comes from below has two bytes"
    assert wide.peak["l2"] > narrow.peak["l2"]


@pytest.mark.feature("L05")
def test_what_leaves_is_rounded_before_the_group_reads_it() -> None:
    case = replace(CHAIN, outputs=("P", "O"))
    held = replace(case, more={"held": {"l2": {"P": "f32"}}})
    assert {s.buffer.tensor: s.buffer.ttype for s in statements(held.program().body) if isinstance(s, Allocate)}[
        "P"
    ] == "f32"
    narrow, wide = measured(case, 400.0), measured(held, 400.0)
    assert all(np.array_equal(wide.outputs[name], narrow.outputs[name]) for name in "PO")
    assert wide.outputs["P"].dtype == np.float16
    with pytest.raises(PlanError, match="half precision tensor that the group reads D"):
        replace(case, outputs=("D", "O"), more={"held": {"l2": {"D": "f32"}}}).program()


@pytest.mark.parametrize(
    ("level", "name", "message"),
    [
        ("l2", "O", "half precision tensor that the group reads O"),
        ("l2", "Q", "no tensor Q"),
        ("dram", "X", "tensors have their own types there"),
    ],
)
def test_only_half_precision_that_is_read_can_be_held_wide(level: str, name: str, message: str) -> None:
    plan = replace(CHAIN, more={"held": {level: {name: "f32"}}}).plan()
    with pytest.raises(PlanError, match=message):
        lower(plan.groups[0], plan.groups[0].variants[0], plan)


@pytest.mark.parametrize("ttype", ["bf16", "f64", "i32"])
def test_no_other_type_holds_half_precision(ttype: str) -> None:
    plan = replace(CHAIN, more={"held": {"l2": {"X": ttype}}}).plan()
    with pytest.raises(PlanError, match=f"type that holds f16 {ttype}"):
        lower(plan.groups[0], plan.groups[0].variants[0], plan)


def test_sums_that_are_wide_above_a_level_are_rounded_once_where_they_wait() -> None:
    """Sums of 3001 elements in steps of 100; what reads them below the registers reads halves."""
    case = Case(
        ["S[s] = sum(t, X[s, t])", "O[s] = f32(S[s]) * 0.5"],
        {"s": 4, "t": 3001},
        {"X": (4, 3001)},
        {"shared": {"O": {"s": 4}}, "reg": {"S": {"s": 1}, "O": {"s": 1}}},
        {"shared": {"S": {"t": 100}}},
        levels=GPU,
        ttypes=dict.fromkeys("XS", "f16"),
        more={"held": {"reg": {"S": "f32"}}},
    )
    program = case.program()
    held = {
        s.buffer.level: s.buffer.ttype
        for s in statements(program.body)
        if isinstance(s, Allocate) and s.buffer.tensor == "S"
    }
    assert held == {"shared": "f16", "reg": "f32"}
    x = np.random.default_rng(0).uniform(0, 2, (4, 3001)).astype(np.float16)
    exact = x.astype(np.float64).sum(1).astype(np.float16).astype(np.float32) / 2
    assert np.all(execute(program, {"X": x}).outputs["O"] == exact)
    assert np.any(execute(replace(case, more={}).program(), {"X": x}).outputs["O"] != exact)
