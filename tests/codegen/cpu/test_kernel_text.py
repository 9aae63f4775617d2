"""The text of kernel IR: what a person reads between passes."""

from tests.codegen.cpu.patterns import layer_norm_matmul
from tilec.codegen.cpu.kernel_text import kernel_text
from tilec.codegen.cpu.pipeline import KernelContext, lower_kernel
from tilec.codegen.cpu.target import CpuTarget


def test_a_kernel_shows_arrays_functions_tasks_and_tiles(golden):
    program = layer_norm_matmul().program()
    golden("layer_norm_matmul.txt", kernel_text(lower_kernel(KernelContext(program, CpuTarget(32, 16)))))
