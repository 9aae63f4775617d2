"""Faults in the IR of real kernels: each breaks a rule of the verifier, is a race, or gives wrong results."""

import numpy as np
import pytest
from scheduler.graphs import make_graph
from scheduler.models import attention
from scheduler.running import device

from tests.codegen.gpu.kernels import HEAD, shape_of
from tests.codegen.gpu.mutations import mutants
from tests.emulator.kernels import HEADER, emulator_cache, needs_compiler, region
from tilec.codegen.gpu.kernel_context import KernelContext
from tilec.codegen.gpu.pipeline import lower_kernel
from tilec.codegen.gpu.print.kernel import print_kernel
from tilec.codegen.gpu.verify_kernel import check_kernel
from tilec.emulator import ORDERS, EmulatedKernel, build_kernels
from tilec.ir.evaluate import evaluate
from tilec.ir.expr import constant_value
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.types import numpy_dtype
from tilec.lower.lowering import lower
from tilec.scheduler import schedule

pytestmark = needs_compiler

EACH = 4
"""Mutants of a kind in a kernel at most, spread over its steps."""


def products():
    """A product of halves on units of matrices, in a pipeline."""
    sizes = {"m": 40, "n": 64, "k": 100}
    nodes = [("c[m, n] = sum(k, x[m, k] * w[k, n])", sizes), ("y[m, n] = maximum(c[m, n], 0.0)", sizes)]
    return make_graph({"x": (40, 100)}, nodes, ["y"], {"w": (100, 64)}, ttypes=dict.fromkeys("xw", "f16"))


def rows():
    """A normalisation of rows, whose lanes add up."""
    sizes = {"m": 400, "n": 96, "r": 96}
    nodes = [
        ("s[m] = sum(r, x[m, r])", sizes),
        ("d[m, n] = x[m, n] - s[m] / 96.0", sizes),
        ("v[m] = sum(r, d[m, r] * d[m, r])", sizes),
        ("y[m, n] = d[m, n] / sqrt(v[m] + 1.0)", sizes),
    ]
    return make_graph({"x": (400, 96)}, nodes, ["y"])


FEWEST = {"products": 26, "rows": 26, "attention": 109}
"""Mutants of the kernels of a graph at least."""

GRAPHS = {"products": products, "rows": rows, "attention": lambda: attention(1, 40, 2, 32)}


def inputs_of(graph):
    """Small integers for inputs, and constants as they are."""
    arrays = {}
    for name, tensor in graph.tensors.items():
        shape, kind = [constant_value(extent) for extent in tensor.shape], numpy_dtype(tensor.ttype)
        if name in graph.constants:
            arrays[name] = np.asarray(graph.constants[name].values).reshape(shape).astype(kind)
        elif any(port.tensor == name for port in graph.inputs):
            arrays[name] = np.random.default_rng(len(name)).integers(-4, 5, shape).astype(kind)
    return arrays


def launches(graph):
    """(kernel IR, its arguments, which of them it writes) of every group of the plan for an a100."""
    gpu = device("a100")
    plan = schedule(graph, gpu)
    arrays = inputs_of(graph)
    for node in plan.prepared:
        arrays[node.name] = evaluate(node.expr, arrays, ttype=plan.tensors[node.name].ttype)
    units = {unit.name: unit for unit, _ in gpu.matrix_units}
    for group in plan.groups:
        program = lower(group, group.variants[0], plan)
        for node in group.nodes:
            arrays[node.name] = evaluate(node.expr, arrays, ttype=plan.tensors[node.name].ttype)
        given = [(np.ascontiguousarray(arrays[p.tensor]), p.name in program.outputs) for p in program.parameters]
        yield lower_kernel(KernelContext(program, 32, KnownRanges(), units)), given


def outcomes(kernels, printed, given):
    """For every kernel what it stores in all orders, and whether there were findings."""
    shape = shape_of(printed)
    for kernel in kernels:
        stored, found = [], False
        for order in ORDERS:
            memory = [(np.zeros_like(array) if written else array, written) for array, written in given]
            emulation = kernel.launch(shape, [region(*each) for each in memory], order)
            found = found or bool(emulation.findings)
            stored += [array.tobytes() for array, written in memory if written]
        yield stored, found


def built_together(texts):
    """Kernels of several texts, of one library."""
    named = [text.replace(" kernel(", f" kernel{n}(") for n, text in enumerate(texts)]
    names = [f"kernel{n}" for n in range(len(texts))]
    whole = HEAD + "\n".join(named)
    library = build_kernels(whole, names, {"tile.h": HEADER}, emulator_cache(), 32)
    return [EmulatedKernel(library, name, whole) for name in names]


def printed(kernel):
    return print_kernel(kernel, "kernel", KnownRanges())


def chosen_mutants(kernel):
    """Some mutants of every kind."""
    every = list(mutants(kernel))
    for kind in dict.fromkeys(each.kind for each in every):
        some = [each for each in every if each.kind == kind]
        yield from some[:: max(1, -(-len(some) // EACH))]


@pytest.mark.slow
@pytest.mark.feature("W47")
@pytest.mark.parametrize("name", GRAPHS)
def test_every_harmful_mutant_is_found(name):
    seen, missed = 0, []
    for kernel, given in launches(GRAPHS[name]()):
        assert check_kernel(kernel, KnownRanges()) == ()
        chosen = list(chosen_mutants(kernel))
        seen += len(chosen)
        legal = [each for each in chosen if not check_kernel(each.kernel, KnownRanges())]
        right = printed(kernel)
        others = [(each, printed(each.kernel).text) for each in legal]
        first, *wrong = outcomes(built_together([right.text, *(text for _, text in others)]), right, given)
        assert not first[1]
        missed += [
            each for (each, _), (stored, found) in zip(others, wrong, strict=True) if not found and stored == first[0]
        ]
    assert seen >= FEWEST[name]
    assert [(each.kind, each.step) for each in missed] == []
