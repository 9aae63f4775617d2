"""A tensor that leaves a group lies there as its readers expect it, else the plan is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tests.lower.cases import Case
from tilec.codegen.kernels import Kernels, lower_plan
from tilec.ir.graph import Port
from tilec.ir.plan import Plan
from tilec.lower.checks.plan_errors import PlanError
from tilec.progress import unseen

FIRST = Case(["H[i, j] = X[i, j] * 2.0"], {"i": 4, "j": 6}, {"X": (4, 6)})
SECOND = Case(["Y[i, j] = H[i, j] + 1.0"], {"i": 4, "j": 6}, {"H": (4, 6)})


def plan(*orders: Mapping[str, tuple[int, int]]) -> Plan:
    """Two groups, the second reads what the first stores; the orders of tensors at the lowest level, by group."""
    plans = [case.plan() for case in (FIRST, SECOND)]
    groups = []
    for made, layouts in zip(plans, orders, strict=True):
        (group,) = made.groups
        variant = replace(group.variants[0], layouts={"dram": layouts}, kernel=f"k{len(groups)}")
        groups.append(replace(group, name=f"g{len(groups)}", variants=(variant,)))
    tensors = {**plans[0].tensors, **plans[1].tensors}
    return replace(plans[0], tensors=tensors, groups=tuple(groups), inputs=(Port("x", "X"),), outputs=(Port("y", "Y"),))


def generated(*orders: Mapping[str, tuple[int, int]], folder: Path) -> Kernels:
    return lower_plan(plan(*orders), folder, unseen)


def test_groups_agree(tmp_path: Path) -> None:
    made = generated({"H": (1, 0)}, {"H": (1, 0)}, folder=tmp_path)
    assert [step.kernel for step in made.steps] == ["k0", "k1"]
    assert generated({"H": (0, 1)}, {}, folder=tmp_path).steps


@pytest.mark.parametrize("orders", [({"H": (1, 0)}, {}), ({}, {"H": (1, 0)}), ({"X": (1, 0)}, {}), ({}, {"Y": (1, 0)})])
def test_groups_that_differ_are_refused(orders: tuple[Mapping[str, tuple[int, int]], ...], tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="in the order") as caught:
        generated(*orders, folder=tmp_path)
    assert caught.value.code == "layout"
    assert not list(tmp_path.iterdir())
