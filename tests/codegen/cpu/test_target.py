import pytest

from tilec.codegen.cpu.target import CpuTarget
from tilec.errors import UnsupportedError
from tilec.spec.resolve import resolve_device


@pytest.mark.parametrize(("device", "lanes", "registers"), [("zen5-avx512", 16, 32), ("avx2", 8, 16), ("neon", 4, 32)])
def test_vectors_come_from_the_device(device, lanes, registers):
    target = CpuTarget.of(resolve_device(device))
    assert (target.lanes("f32"), target.registers) == (lanes, registers)
    assert target.lanes("f64") == lanes // 2
    assert target.lanes("i8") == lanes * 4
    assert target.lanes("f16") == target.lanes("bf16") == lanes


def test_other_back_ends_are_refused():
    with pytest.raises(UnsupportedError, match="back end 'cuda'"):
        CpuTarget.of(resolve_device("a100"))
