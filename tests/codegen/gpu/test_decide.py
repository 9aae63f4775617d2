"""Plans of GPUs stay as the scheduler makes them; kernels without code are told of, for the partition to cut (A15)."""

from dataclasses import replace
from functools import partial

import pytest
from scheduler.graphs import make_graph
from scheduler.models import attention
from scheduler.running import device

from tilec.codegen.backend import backend_of
from tilec.errors import UnsupportedError
from tilec.ir.graph import Graph
from tilec.ir.plan import PlanLevel
from tilec.scheduler.schedule import schedule
from tilec.spec.recipe import ScheduleOptions

pytestmark = pytest.mark.feature("A15")


SMALL = make_graph(
    {"x": (24, 16)},
    [
        ("a[m, n] = sum(k, x[m, k] * w[k, n])", {"m": 24, "n": 20, "k": 16}),
        ("t[m] = max(n, a[m, n])", {"m": 24, "n": 20}),
        ("y[m, n] = exp(a[m, n] - t[m])", {"m": 24, "n": 20}),
    ],
    ["y"],
    {"w": (16, 20)},
)


@pytest.mark.slow_cases("attention-a100", "attention-mi250", "small-a100")
@pytest.mark.parametrize("name", ["a100", "mi250"])
@pytest.mark.parametrize("graph", [attention(), SMALL], ids=["attention", "small"])
def test_a_plan_with_code_stays(graph: Graph, name: str) -> None:
    spec, asked = device(name), []
    backend = backend_of(spec)
    assert backend is not None
    assert backend.decide is not None
    decide = partial(backend.decide, spec)
    options = ScheduleOptions(bounds=False)
    plan = schedule(graph, spec, options, decide=lambda *kernel: asked.append(kernel) or decide(*kernel))
    assert plan == schedule(graph, spec, options)
    with_one_more, groups, program = asked[0]
    program = replace(program, levels=(*program.levels, PlanLevel("lane", 256, 32, scope="lane")))
    with pytest.raises(UnsupportedError, match="GPU code is for memory of the device, of a block and of a unit"):
        decide(with_one_more, groups, program)
