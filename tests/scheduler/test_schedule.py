"""Schedule as a whole: plans are legal, compute what the graph says, and depend on nothing but their inputs."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from scheduler.graphs import make_graph, values_of
from scheduler.models import attention, convolutions
from scheduler.running import device, illegal, run_plan, tiny

from tests.random_graphs import Case, cases
from tilec.errors import ConfigError
from tilec.ir.codec import plan_from_json, plan_to_json
from tilec.ir.expr import operands, variables
from tilec.ir.graph import Graph, Inline
from tilec.ir.plan import Plan
from tilec.scheduler import schedule
from tilec.scheduler.reasons import REASONS
from tilec.spec.recipe import ScheduleOptions

SLOW = (HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large, HealthCheck.large_base_example)
QUICK = settings(max_examples=2000, deadline=None, derandomize=True, phases=[Phase.generate], suppress_health_check=SLOW)
DEVICES = {"cpu": tiny(), "gpu": tiny("explicit", 64)}


def with_constants(case: Case, arrays: dict[str, np.ndarray]) -> Graph:
    """The graph with its last input, if it is one of floats, as a constant."""
    last = case.graph.inputs[-1]
    if len(case.graph.inputs) == 1 or last.tensor in case.indices or arrays[last.tensor].dtype != np.float32:
        return case.graph
    value = Inline(tuple(float(v) for v in arrays[last.tensor].ravel()))
    return replace(case.graph, inputs=case.graph.inputs[:-1], constants={last.tensor: value})


@pytest.mark.feature("W21", "W32", "A02", "A05")
@pytest.mark.parametrize("kind", DEVICES)
@QUICK
@given(case=cases())
def test_random_graphs_compute_what_they_say(kind: str, case: Case) -> None:
    arrays = case.arrays()
    graph = with_constants(case, arrays)
    plan = schedule(graph, DEVICES[kind])
    assert illegal(plan) == []
    found = run_plan(plan, {port.name: arrays[port.tensor] for port in graph.inputs})
    reference = case.reference(arrays)
    for port in graph.outputs:
        expected = reference[port.tensor]
        scale = max(1, np.abs(expected).max(initial=0, where=np.isfinite(expected)))
        np.testing.assert_allclose(found[port.name], expected, rtol=1e-4, atol=1e-4 * scale, equal_nan=True)
