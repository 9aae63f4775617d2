"""Random graphs on random devices: plans are legal, run within capacity with the numbers and bytes they promise, or a
level is named that is too small for one element's tile."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scheduler.graphs import make_graph
from scheduler.running import device

from tests.examples import SLOW, examples
from tests.random_devices import KIB, device_files, devices, read
from tests.random_graphs import Model, models
from tilec.bounds.plan.groups import is_counted
from tilec.errors import ConfigError
from tilec.ir.evaluate import evaluate, integer
from tilec.ir.expr import Const
from tilec.ir.graph import Inline
from tilec.ir.reads import reads
from tilec.ir.types import numpy_dtype
from tilec.ir.verify.plan import check_plan
from tilec.ir.verify.program import check_program
from tilec.lower.checks.check_plan import overflows
from tilec.lower.lowering import lower
from tilec.machine import execute
from tilec.scheduler import schedule
from tilec.scheduler.minimum_capacity import LevelTooSmallError
from tilec.spec.device import DeviceSpec
from tilec.spec.recipe import ScheduleOptions

FUSION = get_args(ScheduleOptions.model_fields["fusion"].annotation)
LONG = settings(max_examples=4000, deadline=None, suppress_health_check=SLOW)


@st.composite
def problems(draw: st.DrawFn, smallest: int) -> tuple[Model, DeviceSpec]:
    """A graph and a device."""
    return draw(models()), draw(devices(smallest))


def proven(error: LevelTooSmallError, device: DeviceSpec) -> bool:
    """Whether the level that is named is too small by its numbers."""
    kind, name = error.level.split()
    there = device.pools[name] if kind == "pool" else device.level(name).capacity
    return error.capacity == there < error.needed


def check(model: Model, device: DeviceSpec, fusion: str) -> None:
    try:
        plan = schedule(model.graph, device, ScheduleOptions(fusion=fusion))  # type: ignore[arg-type]
    except LevelTooSmallError as error:
        if proven(error, device):
            return
        raise
    assert check_plan(plan) == ()
    limits = {level.name: level.capacity for level in device.levels if level.managed == "explicit"}
    arrays = model.arrays()
    values = {port.tensor: arrays[port.tensor] for port in plan.inputs}
    for name, constant in plan.constants.items():
        assert isinstance(constant, Inline)
        tensor = plan.tensors[name]
        shape = [integer(e, {}) for e in tensor.shape]
        values[name] = np.asarray(constant.values, numpy_dtype(tensor.ttype)).reshape(shape)
    for node in plan.prepared:
        values[node.name] = evaluate(node.expr, values, ttype=plan.tensors[node.name].ttype)
    for group in plan.groups:
        program = lower(group, group.variants[0], plan)
        assert check_program(program, {name: tensor.shape for name, tensor in plan.tensors.items()}) == ()
        assert overflows(program) == ()
        result = execute(program, values)
        followed = any(None in read.index for node in group.nodes for read in reads(node.expr))
        for level in program.levels:
            read, written = group.cost.read[level.name], group.cost.written[level.name]
            counted = result.moved[level.name]
            assert Const(counted.written) == written
            assert isinstance(read, Const)
            # The plan knows windows of operands that are read in place from above: guards and // make them narrower.
            exact = not followed and is_counted(group, level.name)
            assert counted.read == read.value if exact else counted.read <= read.value
            assert Const(result.peak[level.name]) == group.cost.footprint[level.name]
            if level.name in limits and level.capacity is not None:
                assert result.peak[level.name] <= level.capacity == limits[level.name]
        values |= result.outputs
    expected = model.reference(arrays)
    for port in plan.outputs:
        agrees(values[port.tensor], expected[port.tensor])


def agrees(found: np.ndarray, expected: np.ndarray) -> None:
    """Equal up to the order of summation."""
    scale = max(1, np.abs(expected).max(initial=0, where=np.isfinite(expected)))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * scale, equal_nan=True)


@pytest.mark.quick_cases("apollo")
@pytest.mark.feature("W17", "W30")
@pytest.mark.parametrize("fusion", FUSION)
@examples(10, seed=2)
@given(problems(KIB))
def test_random_devices(fusion: str, problem: tuple[Model, DeviceSpec]) -> None:
    check(*problem, fusion)


@examples(12, seed=1)
@given(problems(6))
def test_levels_of_a_few_elements(problem: tuple[Model, DeviceSpec]) -> None:
    check(*problem, FUSION[-1])


@pytest.mark.feature("W17")
@pytest.mark.parametrize("fusion", FUSION)
def test_a_level_too_small_for_one_element_is_named(fusion: str) -> None:
    text = "C[m, n] = sum(k, A[m, k] * B[k, n])"
    graph = make_graph({"A": (4, 4), "B": (4, 4)}, [(text, {"m": 4, "n": 4, "k": 4})], ("C",))
    levels = [level.model_copy(update={"pool": None}) for level in device("a100").levels]
    core = len(levels) - 2

    def sized(capacity: int) -> DeviceSpec:
        small = levels[core].model_copy(update={"capacity": capacity})
        return device("a100").model_copy(update={"levels": (*levels[:core], small, levels[-1])})

    schedule(graph, sized(48), ScheduleOptions(fusion=fusion))  # type: ignore[arg-type]
    with pytest.raises(LevelTooSmallError, match="smem of a100 holds 47 bytes, the tile of one element of C needs 48"):
        schedule(graph, sized(47), ScheduleOptions(fusion=fusion))  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("fusion", FUSION)
@LONG
@given(problems(KIB))
def test_many_random_devices(fusion: str, problem: tuple[Model, DeviceSpec]) -> None:
    check(*problem, fusion)


@given(device_files().filter(lambda data: len(data["levels"]) == 1))
@settings(max_examples=3, deadline=None)
def test_a_device_without_a_hierarchy_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="expected at least 2"):
        read(data)
