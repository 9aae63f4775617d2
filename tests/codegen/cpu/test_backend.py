"""Which machines run and time the code of a CPU."""

from dataclasses import replace

import pytest

from tilec.codegen.cpu.backend import can_build, can_run, can_time
from tilec.spec.host import read_host
from tilec.spec.resolve import resolve_device

HOST = replace(read_host(), triple="x86_64-unknown-linux-gnu", processor="znver2", vector_bytes=32, cores=8)


@pytest.mark.parametrize(
    ("name", "reason"),
    [("avx2", None), ("zen5-avx512", "this machine does not run zen5-avx512 code"), ("neon", "does not run neon code")],
)
def test_code_runs_on_its_architecture_with_registers_as_wide(name, reason):
    answer = can_run(resolve_device(name), HOST)
    assert answer is None if reason is None else reason in answer


def test_times_are_those_of_a_processor_and_as_many_cores():
    device = resolve_device("avx2")
    assert can_time(device, HOST) is None
    assert can_time(device, replace(HOST, processor="znver3")) == "it has a znver2, this machine a znver3"
    assert can_time(device, replace(HOST, cores=4)) == "it has 8 cores, this machine 4"


def test_kernels_are_launched_over_the_lowest_level() -> None:
    device = resolve_device("avx2")
    assert can_build(device) is None
    obstacle = can_build(device.model_copy(update={"launch_level": device.level_names[1]}))
    assert obstacle is not None
    assert obstacle.reason.startswith(f"avx2 launches kernels over {device.level_names[1]}, CPU code over the lowest")
