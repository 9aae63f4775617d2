"""Units without work are told where another objective than time leaves them so."""

import pytest

from tests.programs import compute, tensor, whole
from tilec.ir.expr import Const
from tilec.ir.plan import PlanLevel
from tilec.ir.program import Loop, Program
from tilec.scheduler.idle_units import tasks_of, warn_of_idle_units


def program(*loops: tuple[int, str, str]) -> Program:
    """y = x inside of loops, the outermost first: extent, kind, scope."""
    body = (compute(tensor("y[i] = x[i]", {"i": 8}), "y", ""),)
    for number, (extent, kind, scope) in enumerate(reversed(loops)):
        body = (Loop(f"v{number}", Const(extent), body, kind, scope),)
    return Program("k", (PlanLevel("dram", None),), (), (whole("x", (8,)), whole("y", (8,))), ("y",), body)


@pytest.mark.parametrize(
    ("loops", "count"),
    [
        ([], 1),
        ([(3, "spread", "core"), (4, "spread", "core")], 12),
        ([(7, "serial", ""), (3, "spread", "core"), (4, "spread", "core")], 12),
        ([(3, "spread", "core"), (32, "spread", "thread")], 3),
    ],
)
def test_tasks(loops, count):
    assert tasks_of(program(*loops)) == count


def test_only_other_objectives_than_time_say_so(caplog):
    programs = [program((3, "spread", "core")), program((8, "spread", "core"))]
    for objective, units in (("time", 8), ("traffic", 3)):
        warn_of_idle_units(programs, units, objective)
    assert caplog.text == ""
    warn_of_idle_units(programs, 8, "traffic")
    assert "objective: traffic comes before time: 1 group of 2 leave units idle (3 of 8 work)" in caplog.text
