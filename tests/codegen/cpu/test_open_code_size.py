"""The code of models with open sizes does not grow unseen: its variants, functions and lines are counted, no clock is
read."""

from __future__ import annotations

import pytest

from tests.codegen.cpu.test_symbolic_kernels import encoder
from tests.scheduler.graphs import make_graph
from tests.scheduler.running import device
from tilec.codegen.cpu.compile.object_files import lowered_source
from tilec.codegen.cpu.emit.emit_kernel import emit_lowered
from tilec.codegen.cpu.kernel_source import kernel_source, processor_of
from tilec.codegen.cpu.target import CpuTarget
from tilec.codegen.kernels import variants_alone
from tilec.ir.graph import Graph
from tilec.lower.lowering import lower
from tilec.scheduler import schedule
from tilec.spec.recipe import CodegenOptions, ScheduleOptions


def convolution() -> Graph:
    """Two convolutions of 16 channels with open batch, height and width."""
    texts = []
    for number, source in ((1, "X"), (2, "Y1")):
        body = f"sum(r, s, c, {source}[n, h + r, w + s, c] * K{number}[r, s, c, o])"
        less = 2 * number
        domain = {"n": "batch", "h": f"height - {less}", "w": f"width - {less}", "o": 16, "r": 3, "s": 3, "c": 16}
        texts.append((f"C{number}[n, h, w, o] = {body}", domain))
        inner = {name: domain[name] for name in ("n", "h", "w", "o")}
        texts.append((f"Y{number}[n, h, w, o] = maximum(C{number}[n, h, w, o], 0.0)", inner))
    weights = {"K1": (3, 3, 16, 16), "K2": (3, 3, 16, 16)}
    shape = ("batch", "height", "width", 16)
    return make_graph({"X": shape}, texts, ["Y2"], weights, ["batch", "height", "width"])


def counted(graph: Graph) -> tuple[int, int, int]:
    """Variants of a graph's plan for a processor, functions of their kernels and lines of these."""
    zen5 = device("zen5-avx512")
    plan = schedule(graph, zen5, ScheduleOptions())
    processor = processor_of(plan, zen5, CodegenOptions())
    variants = functions = lines = 0
    for group in plan.groups:
        for alone, _ in variants_alone(plan, group):
            program = lower(alone, alone.variants[0], plan)
            kernel = lowered_source(kernel_source(plan, [alone], program, zen5, processor, None))
            code = emit_lowered(kernel, CpuTarget.of(zen5))
            variants += 1
            functions += 1 + len(code.parts)
            lines += sum(each.script().count("\n") for each in (code.function, *code.parts.values()))
    return variants, functions, lines


@pytest.mark.slow_cases("encoder")
@pytest.mark.feature("B09")
@pytest.mark.parametrize(
    ("graph", "most"), [(encoder(), (5, 33, 28_700)), (convolution(), (4, 4, 4_100))], ids=["encoder", "convolution"]
)
def test_the_code_of_open_sizes_stays_small(graph: Graph, most: tuple[int, int, int]) -> None:
    """A tenth more than there is. The convolutions have 5 variants of 6016 lines where 3 % at a size that nobody names
    pay for one."""
    found = counted(graph)
    assert all(count <= limit for count, limit in zip(found, most, strict=True)), found
