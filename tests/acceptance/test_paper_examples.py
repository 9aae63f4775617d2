"""The examples of Welder's paper, from ONNX to the tile machine: its toy to the byte, and figure 5's three levels."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import pytest
from importer.reference import onnxruntime
from onnx import TensorProto, helper

from tilec.importer import import_model
from tilec.ir.expr import Const, Expr, operands
from tilec.ir.graph import Graph
from tilec.ir.lifetimes import statements
from tilec.ir.plan import Cost, Group, Plan, PlanLevel, Sizes, Variant
from tilec.ir.program import Allocate, ComputeTile, Loop, Program
from tilec.ir.verify.plan import check_plan
from tilec.ir.verify.program import check_program
from tilec.lower.checks.check_plan import overflows
from tilec.lower.counts.footprint import footprint
from tilec.lower.counts.traffic import traffic
from tilec.lower.lowering import lower
from tilec.machine import Result, execute

GLOBAL = PlanLevel("dram", None)
SHARED = PlanLevel("smem", 48 << 10, 80, "explicit", "block")
REGISTERS = PlanLevel("reg", 1020)
RNG = np.random.default_rng(0)
Tiles = Mapping[str, Mapping[str, Sizes]]


def model(folder: Path, nodes: list[onnx.NodeProto], inputs: Mapping[str, list[int]], output: list[int]) -> Path:
    """An ONNX file of float32 tensors with one output P."""
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()]
    result = [helper.make_tensor_value_info("P", TensorProto.FLOAT, output)]
    made = helper.make_model(
        helper.make_graph(nodes, "example", ports, result),
        ir_version=8,
        opset_imports=[helper.make_opsetid("", 17)],
    )
    onnx.save(made, folder / "model.onnx")
    return folder / "model.onnx"


def planned(
    graph: Graph, levels: tuple[PlanLevel, ...], connect: Mapping[str, str], tiles: Tiles, steps: Tiles
) -> Plan:
    """All nodes as one group, connected above the lowest level unless `connect` says otherwise."""
    made = {node.name for node in graph.nodes}
    edges = {f"{t}->{n.name}": levels[1].name for n in graph.nodes for t in operands(n.expr) if t in made}
    variant = Variant(Const(True), tuple(level.name for level in levels), tiles, steps, "example")
    group = Group("P", graph.nodes, ("P",), {**edges, **connect}, (variant,), Cost({}, {}, {}))
    plan = Plan(
        "example", "paper", levels, (), graph.inputs, graph.outputs, graph.tensors, graph.constants, (), (group,), ()
    )
    assert check_plan(plan) == ()
    return plan


def lowered(plan: Plan) -> Program:
    """The verified program."""
    program = lower(plan.groups[0], plan.groups[0].variants[0], plan)
    assert check_program(program, {name: tensor.shape for name, tensor in plan.tensors.items()}) == ()
    assert overflows(program) == ()
    return program


def run(path: Path, plan: Plan) -> Result:
    """On the tile machine, with the bytes and room that were planned, and onnxruntime's numbers."""
    program = lowered(plan)
    feeds = {
        port.name: RNG.standard_normal([value(n) for n in plan.tensors[port.tensor].shape]).astype(np.float32)
        for port in plan.inputs
    }
    result = execute(program, feeds)
    assert result.moved == traffic(program)
    assert {level: Const(size) for level, size in result.peak.items()} == footprint(program)
    np.testing.assert_allclose(result.outputs["P"], onnxruntime(path, feeds)[0], rtol=1e-4, atol=1e-6)
    return result


def value(size: Expr) -> int:
    assert isinstance(size, Const)
    return int(size.value)


def toy(folder: Path, rows: int, tile: int) -> tuple[Path, Plan]:
    """MatMul and Softmax of rows x 64 x 128, opened into what one reduction each does, connected as a whole."""
    nodes = [helper.make_node("MatMul", ["A", "B"], ["S"]), helper.make_node("Softmax", ["S"], ["P"], axis=-1)]
    path = model(folder, nodes, {"A": [rows, 64], "B": [64, 128]}, [rows, 128])
    graph = import_model(path).graph
    reducers = [node.expr.reducer for node in graph.nodes]
    assert reducers == ["sum", "max", None, "sum", None]
    plan = planned(graph, (GLOBAL, SHARED), {}, {"smem": {"P": {"i": tile}}}, {"smem": {"S": {"k": 16}}})
    return path, plan


@pytest.mark.feature("W04", "W07", "W56")
@pytest.mark.parametrize(("tile", "mebibytes"), [(4, 840), (16, 264)])
def test_the_toy_moves_what_the_paper_says(tmp_path: Path, tile: int, mebibytes: int) -> None:
    """Every tile loads its rows of A and all of B and stores its rows of the result; nothing else moves."""
    rows = 98304
    _, plan = toy(tmp_path, rows, tile)
    moved = traffic(lowered(plan))["smem"]
    assert moved.read + moved.written == mebibytes << 20
    few = rows // 1024
    path, small = toy(tmp_path, few, tile)
    counted = run(path, small).moved["smem"]
    assert (counted.read + counted.written) * 1024 == mebibytes << 20


def held(program: Program, tensor: str) -> dict[str, list[tuple[int, ...]]]:
    """Level -> shapes of the buffers of a tensor there, in order of the program."""
    found: dict[str, list[tuple[int, ...]]] = {}
    for s in statements(program.body):
        if isinstance(s, Allocate) and s.buffer.tensor == tensor:
            found.setdefault(s.buffer.level, []).append(tuple(map(value, s.buffer.shape)))
    return found


@pytest.mark.feature("W02", "W03", "W10", "W14", "W31", "W56")
def test_figure_5_maps_to_three_levels(tmp_path: Path) -> None:
    """Convolution and ReLU share a tile in registers; as one they share one with the pooling at the core's level; all
    three are one at the lowest level, which sees operands and result only."""
    nodes = [
        helper.make_node("Conv", ["X", "W"], ["C"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["C"], ["R"]),
        helper.make_node("MaxPool", ["R"], ["P"], kernel_shape=[2, 2], strides=[2, 2]),
    ]
    path = model(tmp_path, nodes, {"X": [1, 8, 10, 10], "W": [16, 8, 3, 3]}, [1, 16, 5, 5])
    graph = import_model(path).graph
    assert [node.name for node in graph.nodes] == ["C", "R", "P"]
    _, relu, pool = (node.expr for node in graph.nodes)
    (y, x), (h, w) = relu.spatial[2:], pool.spatial[2:]
    plan = planned(
        graph,
        (GLOBAL, SHARED, REGISTERS),
        {"C->R": "reg", "R->P": "smem"},
        {"smem": {"P": {h: 1, w: 1}}, "reg": {"R": {y: 1, x: 1}}},
        {"reg": {"C": dict.fromkeys(graph.nodes[0].expr.reduce, 1)}},
    )
    program = lowered(plan)
    # The pool's tile is one place of all channels: the reuse tile at the core's level is 2 x 2 places, one of them at a
    # time in registers, where the convolution's result never leaves them.
    assert held(program, "C") == {"reg": [(1, 16, 1, 1)]}
    assert held(program, "R") == {"smem": [(1, 16, 2, 2)], "reg": [(1, 16, 1, 1), (1, 16, 2, 2)]}
    assert held(program, "P") == {"smem": [(1, 16, 1, 1)], "reg": [(1, 16, 1, 1)]}
    order = [s.expr.tensor for s in statements(program.body) if isinstance(s, ComputeTile)]
    assert order == ["C", "R", "P"]
    spread = [s for s in statements(program.body) if isinstance(s, Loop) and s.kind == "spread"]
    assert [(loop.scope, value(loop.extent)) for loop in spread] == [("block", 5), ("block", 5)]
    moved = run(path, plan).moved
    # 4 x 4 places of 8 channels for each of 25 tiles, less the border, with all weights; the result once.
    rows = 5 * 4 - 2
    assert moved["smem"].read == (rows * rows * 8 + 25 * 16 * 8 * 9) * 4
    assert moved["smem"].written == 16 * 25 * 4
    assert moved["dram"].read == moved["dram"].written == 0
    assert moved["reg"].written == (16 * 100 + 16 * 25) * 4
