"""The kept plans beside their bounds: none below what is proved, none better than what is known."""

from __future__ import annotations

import json

import pytest
from replay.plans import FOLDER, MODELS, QUICK, cases

from tilec.bounds.einsum.cache import cached
from tilec.bounds.levels import level_capacities
from tilec.bounds.plan.bound_violations import bound_violations
from tilec.bounds.plan.plan_bounds import with_bounds
from tilec.ir.codec import plan_from_json
from tilec.spec.resolve import resolve_device


def marked() -> list[object]:
    """The cases with fixed sizes; what is not quick is slow here as well."""
    fixed = [(name, device) for name, device in cases() if not MODELS[name][2]]
    return [pytest.param(n, d, marks=() if d in QUICK else pytest.mark.slow, id=f"{n}-{d}") for n, d in fixed]


@pytest.mark.slow_cases(
    "bert-base-avx2", "nafnet-a100", "nafnet-avx2", "shufflenet-v2-a100", "shufflenet-v2-avx2", "mobilenet-v2-avx2"
)
@pytest.mark.parametrize(("name", "device"), marked())
def test_no_plan_is_below_its_bounds(name: str, device: str) -> None:
    plan = plan_from_json(json.loads((FOLDER / f"{name}.{device}.json").read_text(encoding="utf-8")))
    found = bound_violations(with_bounds(plan, level_capacities(resolve_device(device)), cached))
    assert list(map(str, found)) == []
