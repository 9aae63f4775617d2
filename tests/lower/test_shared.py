"""Reductions that share a reduce loop: right on the machine at every level, refused by a code where that cannot be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.lower.cases import Case, check, loops
from tests.lower.shared import FLASH, SHARED, SOFTMAX, shared
from tilec.ir.codec import plan_from_json, plan_to_json
from tilec.ir.lifetimes import statements
from tilec.ir.plan import Shared
from tilec.ir.program import Allocate, ComputeTile, LoadTiles
from tilec.ir.text import text_of
from tilec.lower.checks.check_plan import problems
from tilec.lower.checks.plan_errors import REASONS, PlanError


@pytest.mark.slow_cases(
    "every node on its own",
    "in the steps of another reduction",
    "levels without loads",
    "results that leave",
    "steps below and at the core",
    "steps of a producer below the loop",
    "three levels of tiles",
)
@pytest.mark.feature("W09", "W31")
@pytest.mark.parametrize("name", SHARED)
def test_they_compute_what_the_nodes_do(name: str) -> None:
    check(SHARED[name])


@pytest.mark.feature("W09")
def test_scores_exist_for_one_step_only() -> None:
    program = FLASH.program()
    shapes = {
        s.buffer.name: [text_of(n) for n in s.buffer.shape] for s in statements(program.body) if isinstance(s, Allocate)
    }
    assert shapes["S_l2"] == shapes["E_l2"] == ["1", "8", "20"]
    assert sum(loop.variable.startswith("n_O_l2") for loop in loops(program.body)) == 1


def test_a_step_keeps_rescales_and_adds() -> None:
    body = next(loop.body for loop in loops(FLASH.program().body) if loop.variable == "n_O_l2")
    tiles = [s for s in statements(body) if isinstance(s, ComputeTile)]
    assert [(s.expr.tensor, s.accumulate) for s in tiles] == [
        ("S", True),
        ("X_before", False),
        ("X", True),
        ("E", False),
        ("Z_before", False),
        ("Z", False),
        ("Z", True),
        ("R", False),
        ("O", False),
        ("O", True),
    ]


def test_plans_write_what_they_share() -> None:
    plan = FLASH.plan()
    data = plan_to_json(plan)
    assert data["groups"][0]["variants"][0]["shared"]["X"] == {
        "iterators": {"n": "n"},
        "loop": "O",
        "rescale": "X[b, m]",
    }
    assert plan_from_json(data) == plan
    assert "shared" not in plan_to_json(replace(FLASH, more={}).plan())["groups"][0]["variants"][0]


def sharing(**entries: Shared) -> Case:
    return replace(FLASH, more={"shared": {**SOFTMAX, **entries}})


BAD: dict[str, tuple[Case, str]] = {
    "unknown-name": (sharing(X=shared("O", "X[b, m]", q="n")), "X"),
    "order": (replace(FLASH, texts=[*FLASH.texts[:2], "B[b, m] = X[b, m] * 2.0", *FLASH.texts[2:]]), "X->B"),
    "shared-leader": (sharing(O=shared("Z", "O[b, m, d]", n="n")), "X"),
    "shared-extent": (
        replace(
            sharing(X=shared("O", "X[b, m]", k="n")),
            texts=[FLASH.texts[0], "X[b, m] = max(k, Q[b, m, k])", *FLASH.texts[2:]],
            steps={"l2": {"O": {"n": 20}}},
        ),
        "X",
    ),
    "shared-rescale": (sharing(X=shared("O", "X[b, m] * Z[b, m]", n="n")), "X"),
    "shared-inside": (replace(FLASH, outputs=("O", "E")), "E"),
    "shared-reduction": (
        replace(FLASH, more={"shared": {"X": SOFTMAX["X"], "O": shared("O", "O[b, m, d]", n="n")}}),
        "Z",
    ),
    "shared-apart": (replace(FLASH, connect={"E->R": "dram", "Z->R": "dram"}), "E"),
    "shared-steps": (replace(FLASH, steps={"l2": {"O": {"n": 20}, "Z": {"n": 10}}}), "Z"),
    "shared-step": (sharing(Z=shared("O", "Z[b, m]")), "Z"),
    "shared-end": (replace(FLASH, connect={"X->E": "reg"}), "X"),
    "shared-part": (
        replace(
            FLASH,
            texts=[
                *FLASH.texts[:2],
                "B[b, m] = Q[b, m, 0] * 2.0",
                "E[b, m, n] = exp(S[b, m, n] - X[b, m]) * B[b, m]",
                *FLASH.texts[3:],
                "Y[b, m, d] = O[b, m, d] * B[b, m]",
            ],
            connect={"B->E": "reg"},
        ),
        "B",
    ),
}


@pytest.mark.parametrize("code", BAD)
def test_codes(code: str) -> None:
    case, edge = BAD[code]
    plan = case.plan()
    first = problems(plan.groups[0], plan.groups[0].variants[0], plan)[0]
    assert (first.code, first.edge) == (code, edge)
    with pytest.raises(PlanError) as caught:
        case.program()
    assert edge in caught.value.message


def test_every_code_has_a_test() -> None:
    assert {code for code in REASONS if code.startswith("shared-")} <= set(BAD)


def test_former_values_are_loaded_like_what_they_were() -> None:
    loaded = [
        [s.target for s in statements(SHARED[name].program().body) if isinstance(s, LoadTiles)]
        for name in ("every node on its own", "levels without loads")
    ]
    assert [any(target.startswith("X_before") for target in targets) for targets in loaded] == [True, False]
