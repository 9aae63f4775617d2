"""What a plan says without effect is refused, not passed over."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.lower.cases import ATTENTION, CASES, MATMUL, Case
from tests.lower.shared import FLASH, SHARED
from tilec.ir.plan import Refusal
from tilec.lower.checks.plan_errors import REASONS
from tilec.lower.checks.unused_decisions import unused_decisions


def unused(case: Case) -> tuple[Refusal, ...]:
    plan = case.plan()
    return unused_decisions(plan.groups[0], plan.groups[0].variants[0], plan, case.program())


VAIN = {
    "tile of an epilogue's producer": (replace(MATMUL, tiles={"reg": {"C": {"m": 2}}}), "C", "tile at reg", "of Y"),
    "tile at the lowest level": (replace(MATMUL, tiles={"dram": {"Y": {"m": 2}}}), "Y", "tile at dram", "whole"),
    "step at the lowest level": (replace(MATMUL, steps={"dram": {"C": {"k": 2}}}), "C", "reduce step at dram", "whole"),
    "order": (replace(MATMUL, more={"order": {"l2": {"C": ("n", "m")}}}), "C", "order of loops at l2", "of Y"),
    "raster of one loop": (
        replace(MATMUL, tiles={"l2": {"Y": {"m": 2}}}, more={"raster": {"l2": {"Y": 2}}}),
        "Y",
        "raster at l2",
        "not spread over units along several loops",
    ),
    "tail": (replace(MATMUL, more={"tails": {"reg": {"C": "clip"}}}), "C", "tail policy at reg", "of Y"),
    "layout of what is not loaded": (
        replace(ATTENTION, more={"loads": {"KT": ()}, "layouts": {"l2": {"KT": (0, 2, 1)}}}),
        "KT",
        "layout at l2",
        "not held",
    ),
    "shared loop": (replace(FLASH, steps={"reg": {"X": {"n": 16}}}), "O", "shared loop at reg", "no reduce step"),
    "copies": (
        replace(ATTENTION, more={"loads": {"V": ("l2",)}, "copies": {"reg": {"V": 2}}}),
        "V",
        "number of copies at reg",
        "no serial loop there loads it from an input",
    ),
}


@pytest.mark.parametrize("name", VAIN)
def test_decisions_without_effect(name: str) -> None:
    case, where, what, why = VAIN[name]
    (refusal,) = unused(case)
    assert (refusal.code, refusal.edge) == ("unused", where)
    said = REASONS["unused"].format(edge=refusal.edge, **refusal.numbers)
    assert what in said
    assert why in said


@pytest.mark.parametrize("name", ["attention", "convolution with epilogue", "four levels", "softmax", *SHARED])
def test_decisions_with_an_effect(name: str) -> None:
    assert unused({**CASES, **SHARED}[name]) == ()
