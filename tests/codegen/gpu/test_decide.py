"""Plans of GPUs stay as the scheduler makes them; kernels without code are told of, for the partition to cut (A15)."""

from dataclasses import replace
from functools import partial

import pytest
from scheduler.models import attention
from scheduler.running import device

from tilec.codegen.backend import backend_of
from tilec.errors import UnsupportedError
from tilec.ir.plan import PlanLevel
from tilec.scheduler.schedule import schedule
from tilec.spec.recipe import ScheduleOptions

pytestmark = pytest.mark.feature("A15")


@pytest.mark.slow_cases("a100")
@pytest.mark.parametrize("name", ["a100", "mi250"])
def test_a_plan_with_code_stays(name: str) -> None:
    spec, asked = device(name), []
    backend = backend_of(spec)
    assert backend is not None
    assert backend.decide is not None
    decide = partial(backend.decide, spec)
    graph, options = attention(), ScheduleOptions(bounds=False)
    plan = schedule(graph, spec, options, decide=lambda *kernel: asked.append(kernel) or decide(*kernel))
    assert plan == schedule(graph, spec, options)
    with_one_more, groups, program = asked[0]
    program = replace(program, levels=(*program.levels, PlanLevel("lane", 256, 32, scope="lane")))
    with pytest.raises(UnsupportedError, match="GPU code is for memory of the device, of a block and of a unit"):
        decide(with_one_more, groups, program)
