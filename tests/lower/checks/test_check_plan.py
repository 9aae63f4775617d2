"""Plans that cannot be lowered are named with a code, an edge and numbers, never by a bare exception."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.lower.cases import DRAM, MATMUL, Case
from tilec.ir.expr import Const
from tilec.ir.plan import Plan, PlanLevel, Refusal
from tilec.lower.checks.check_plan import overflows, problems
from tilec.lower.checks.plan_errors import REASONS, PlanError
from tilec.lower.counts.footprint import footprint
from tilec.lower.lowering import lower

DIAMOND = Case(
    ["A[i] = X[i] * 2.0", "B[i] = A[i] + 1.0", "C[i] = A[i] + B[i]"],
    {"i": 10},
    {"X": (10,)},
    {"l2": {"C": {"i": 4}}},
    connect={"A->B": "l2", "A->C": "reg", "B->C": "l2"},
)


def refused(plan: Plan) -> tuple[Refusal, ...]:
    return problems(plan.groups[0], plan.groups[0].variants[0], plan)


BAD = {
    "unknown-level": (replace(MATMUL, connect={"C->Y": "l3"}), "C->Y"),
    "cycle": (DIAMOND, "B->C"),
    "unknown-name": (replace(MATMUL, tiles={"l2": {"Y": {"mm": 4}}}), "Y"),
    "size": (replace(MATMUL, steps={"l2": {"C": {"k": 0}}}), "C"),
    "permutation": (replace(MATMUL, more={"layouts": {"l2": {"A": (0, 0)}}}), "A"),
    "order": (replace(MATMUL, texts=MATMUL.texts[::-1]), "C->Y"),
    "not-computed": (replace(MATMUL, outputs=("Y", "A")), "A"),
}


@pytest.mark.parametrize("code", BAD)
def test_codes(code: str) -> None:
    case, edge = BAD[code]
    plan = case.plan()
    first = refused(plan)[0]
    assert (first.code, first.edge) == (code, edge)
    with pytest.raises(PlanError) as caught:
        lower(plan.groups[0], plan.groups[0].variants[0], plan)
    assert caught.value.code == code
    assert caught.value.place == "g"
    assert edge in caught.value.message


def test_every_code_has_a_test() -> None:
    cpu, gpu = {"vector", "accumulators", "unit", "prefetch", "streamed"}, {"threads", "resident", "arrival", "fast"}
    assert {*BAD, "capacity", "unused", "layout", "unroll", *cpu, *gpu} == {
        code for code in REASONS if not code.startswith("shared-")
    }


def test_a_legal_plan_has_no_problems() -> None:
    assert refused(MATMUL.plan()) == ()


BAD_NAMES = {
    "tiles": ({"l2": {"y": {"m": 4}}}, "node y", "Y"),
    "tails": ({"regs": {"Y": "clip"}}, "level regs", "reg"),
    "loads": ({"a": ("l2",)}, "tensor a", "A"),
    "copies": ({"l2": {"bb": 2}}, "tensor bb", "b"),
    "units": ({"X": "fma"}, "node X", None),
    "vectors": ({"C": "q"}, "iterator for a vector q", None),
    "unroll": ({"X": {"m": 4}}, "node X", None),
    "streamed": (("Q",), "tensor Q", None),
}


@pytest.mark.parametrize("field", BAD_NAMES)
def test_the_nearest_name_is_offered(field: str) -> None:
    table, what, near = BAD_NAMES[field]
    case = replace(MATMUL, tiles=table) if field == "tiles" else replace(MATMUL, more={field: table})
    plan = case.plan()
    with pytest.raises(PlanError, match=what) as caught:
        lower(plan.groups[0], plan.groups[0].variants[0], plan)
    assert caught.value.hint == (f"Did you mean {near!r}?" if near else "Change the plan there and run codegen again.")


def test_a_reduce_iterator_has_no_tile_and_a_spatial_one_no_step() -> None:
    tiled = replace(MATMUL, tiles={"l2": {"C": {"k": 4}}}).plan()
    stepped = replace(MATMUL, steps={"l2": {"C": {"m": 4}}}).plan()
    assert [r.numbers["what"] for r in (*refused(tiled), *refused(stepped))] == [
        "iterator for a tile",
        "iterator for a reduce step",
    ]


def test_capacity() -> None:
    small, large = (replace(MATMUL, levels=(DRAM, PlanLevel("l2", n), PlanLevel("reg", None))) for n in (5000, 50000))
    (refusal,) = overflows(small.program())
    assert (refusal.code, refusal.numbers["level"], refusal.numbers["capacity"]) == ("capacity", "l2", 5000)
    assert overflows(large.program()) == ()
    assert str(refusal.numbers["bytes"]) in REASONS["capacity"].format(edge=refusal.edge, **refusal.numbers)


def test_a_level_that_is_exactly_full_holds_its_program() -> None:
    full = footprint(MATMUL.program())["l2"]
    assert isinstance(full, Const)
    for missing in (0, 1):
        case = replace(MATMUL, levels=(DRAM, PlanLevel("l2", int(full.value) - missing), PlanLevel("reg", None)))
        assert len(overflows(case.program())) == missing
