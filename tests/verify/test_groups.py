"""Groups evaluated in NumPy round where the plan says that they do."""

from dataclasses import replace

import numpy as np
import pytest

from tests.lower.cases import Case
from tilec.verify.groups import check_group, evaluated

CASE = Case(
    ["P[s] = X[s] * X[s]", "O[s] = P[s] / 1024.0"],
    {"s": 8},
    {"X": (8,)},
    ttypes=dict.fromkeys("XPO", "f16"),
    more={"wide": ("P",)},
)
X = np.full(8, 400, np.float16)


@pytest.mark.parametrize(("wide", "value"), [(("P",), 156.25), ((), np.inf)])
def test_half_precision_is_rounded_as_the_group_holds_it(wide: tuple[str, ...], value: float) -> None:
    plan = replace(CASE, more={"wide": wide}).plan()
    found = evaluated(plan.groups[0], plan, {"X": X})
    assert found["P"].dtype == (np.float32 if wide else np.float16)
    assert found["O"].dtype == np.float16
    assert np.all(found["O"] == value)


def test_what_a_group_made_of_wide_tensors_passes() -> None:
    plan = CASE.plan()
    tensors = {"X": X, "O": np.full(8, 156.25, np.float16)}
    assert check_group(plan.groups[0], plan, tensors, {}).passed
