"""A plan in NumPy: what it evaluates for some of its outputs."""

import numpy as np
import pytest

from tilec.verify import whole_plan
from tilec.verify.whole_plan import WholePlan
from verify.plans import node, plan_of, tensor


@pytest.mark.parametrize(("names", "expected"), [(["y"], ["h", "y"]), (["z"], ["z"]), (None, ["h", "y", "z"])])
def test_only_what_the_outputs_depend_on_is_evaluated(monkeypatch, tmp_path, names, expected):
    nodes = [node(text, {"i": 4}) for text in ("h[i] = x[i] * 2.0", "y[i] = h[i] + 1.0", "z[i] = x[i] - 1.0")]
    plan = plan_of(nodes, {"x": tensor("f32", 4)}, ["y", "z"])
    groups = []
    evaluated = whole_plan.evaluated
    monkeypatch.setattr(
        whole_plan, "evaluated", lambda group, *rest: groups.append(group.name) or evaluated(group, *rest)
    )
    outputs = WholePlan(plan, tmp_path).outputs({"x": np.ones(4, np.float32)}, names=names)
    assert groups == expected
    assert list(outputs) == (names or ["y", "z"])
