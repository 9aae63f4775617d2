"""Random models of loops, scans, branches and sequences inside of each other against ONNX's own evaluation."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.helper import make_node
from onnx.reference import ReferenceEvaluator

from tests.importer.reference import normal, run, save
from tilec.importer import import_model

VECTOR, NUMBER, TRUTH = "f", "i", "b"
TYPES = {VECTOR: (TensorProto.FLOAT, [3]), NUMBER: (TensorProto.INT64, []), TRUTH: (TensorProto.BOOL, [])}

Names = dict[str, list[str]]
"""Kind -> tensors in reach: vectors, and numbers and truths that import knows."""


class Models:
    """Draws models; every structure is one method that adds nodes and puts what they make in reach."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.weights: dict[str, Any] = {}
        self._made = 0

    def name(self) -> str:
        self._made += 1
        return f"t{self._made}"

    def constant(self, value: Any) -> str:
        name = f"c{len(self.weights)}"
        self.weights[name] = np.asarray(value)
        return name

    def nodes(self, reach: Names, depth: int, count: int) -> list[onnx.NodeProto]:
        structures = [self.branch, self.loop, self.scan, self.sequence] if depth < 2 else []
        made: list[onnx.NodeProto] = []
        for _ in range(count):
            made += self.random.choice([self.vector, self.number, self.truth, *structures])(reach, depth)
        return made

    def vector(self, reach: Names, _depth: int) -> list[onnx.NodeProto]:
        op = self.random.choice(["Add", "Sub", "Mul", "Max"])
        return [make_node(op, [self.pick(reach, VECTOR), self.pick(reach, VECTOR)], [self.new(reach, VECTOR)])]

    def number(self, reach: Names, _depth: int) -> list[onnx.NodeProto]:
        op, between = self.random.choice(["Add", "Sub", "Mul"]), self.name()
        inputs = [self.pick(reach, NUMBER), self.pick(reach, NUMBER)]
        last = [between, self.constant(np.int64(5))]
        return [make_node(op, inputs, [between]), make_node("Mod", last, [self.new(reach, NUMBER)])]

    def truth(self, reach: Names, _depth: int) -> list[onnx.NodeProto]:
        kind = self.random.choice([NUMBER, TRUTH])
        op = self.random.choice({NUMBER: ["Less", "Equal", "Greater"], TRUTH: ["And", "Or", "Xor"]}[kind])
        return [make_node(op, [self.pick(reach, kind), self.pick(reach, kind)], [self.new(reach, TRUTH)])]

    def branch(self, reach: Names, depth: int) -> list[onnx.NodeProto]:
        """On a condition that is known, with a number among the results; or on the model's input `d`."""
        known = self.random.random() < 0.5
        kinds = [VECTOR, NUMBER] if known else [VECTOR]
        condition = self.pick(reach, TRUTH) if known else "d"
        bodies = [self.graph(reach, depth, {}, kinds) for _ in range(2)]
        outputs = [self.new(reach, kind) for kind in kinds]
        return [make_node("If", [condition], outputs, then_branch=bodies[0], else_branch=bodies[1])]

    def loop(self, reach: Names, depth: int) -> list[onnx.NodeProto]:
        """With a trip count and a condition that comes from the number of the iteration."""
        number, go, on = self.name(), self.name(), self.name()
        less = make_node("Less", [number, self.constant(np.int64(self.random.randint(0, 3)))], [on])
        given = {number: NUMBER, go: TRUTH, self.name(): VECTOR, self.name(): NUMBER}
        body = self.graph(reach, depth, given, [VECTOR, NUMBER, VECTOR])
        body.node.append(less)
        body.output.insert(0, info(on, TRUTH))
        trips = self.constant(np.int64(self.random.randint(1, 4)))
        start = [self.pick(reach, VECTOR), self.pick(reach, NUMBER)]
        rows, axis = self.name(), self.constant(np.array([0]))
        outputs = [self.new(reach, VECTOR), self.new(reach, NUMBER), rows]
        return [
            make_node("Loop", [trips, self.constant(np.bool_(True)), *start], outputs, body=body),
            make_node("ReduceMax", [rows, axis], [self.new(reach, VECTOR)], keepdims=0),
        ]

    def scan(self, reach: Names, depth: int) -> list[onnx.NodeProto]:
        """Of 1 to 3 rows that are all alike."""
        x, rows, axis = self.name(), self.name(), self.constant(np.array([0]))
        size = self.constant(np.array([self.random.randint(1, 3), 3]))
        inputs = [self.pick(reach, VECTOR), self.pick(reach, VECTOR)]
        body = self.graph(reach, depth, {self.name(): VECTOR, self.name(): VECTOR}, [VECTOR, VECTOR])
        return [
            make_node("Expand", [inputs[0], size], [x]),
            make_node("Scan", [inputs[1], x], [self.new(reach, VECTOR), rows], body=body, num_scan_inputs=1),
            make_node("ReduceMin", [rows, axis], [self.new(reach, VECTOR)], keepdims=0),
        ]

    def sequence(self, reach: Names, _depth: int) -> list[onnx.NodeProto]:
        """Two vectors, a third somewhere among them, and one of them again."""
        first, second = self.name(), self.name()
        places = [self.constant(np.int64(self.random.randint(-2, 1))) for _ in range(2)]
        pair = [self.pick(reach, VECTOR), self.pick(reach, VECTOR)]
        inserted = [first, self.pick(reach, VECTOR), places[0]]
        return [
            make_node("SequenceConstruct", pair, [first]),
            make_node("SequenceInsert", inserted, [second]),
            make_node("SequenceAt", [second, places[1]], [self.new(reach, VECTOR)]),
        ]

    def graph(self, reach: Names, depth: int, given: dict[str, str], kinds: list[str]) -> onnx.GraphProto:
        """A body that is given these and returns one of each kind."""
        inner = {kind: [*names, *(n for n, k in given.items() if k == kind)] for kind, names in reach.items()}
        nodes = self.nodes(inner, depth + 1, self.random.randint(1, 3))
        outputs = [self.name() for _ in kinds]
        nodes += [make_node("Identity", [self.pick(inner, k)], [name]) for name, k in zip(outputs, kinds, strict=True)]
        infos = [info(name, kind) for name, kind in given.items()]
        return helper.make_graph(nodes, "b", infos, [info(n, k) for n, k in zip(outputs, kinds, strict=True)])

    def pick(self, reach: Names, kind: str) -> str:
        return self.random.choice(reach[kind])

    def new(self, reach: Names, kind: str) -> str:
        """A name for a result, in reach from now on."""
        reach[kind].append(self.name())
        return reach[kind][-1]


def info(name: str, kind: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, *TYPES[kind])


@pytest.mark.parametrize("seed", range(40))
def test_random_structures(tmp_path: Path, seed: int) -> None:
    models = Models(seed)
    numbers, truths = ([models.constant(np.array(v)) for v in values] for values in ((0, 1, 3), (False, True)))
    reach = {VECTOR: ["x", "y"], NUMBER: numbers, TRUTH: truths}
    nodes = models.nodes(reach, 0, 6)
    outputs = [*(n for n in reach[VECTOR][-3:] if n not in "xy"), reach[NUMBER][-1]]
    inputs = {"x": ("float32", [3]), "y": ("float32", [3]), "d": ("bool", [])}
    path = save(tmp_path / "m.onnx", nodes, inputs, outputs, models.weights, 18)
    feeds = {"x": normal(3), "y": normal(3, seed=1), "d": np.array(seed % 2 == 0)}
    wanted = ReferenceEvaluator(str(path)).run(None, feeds)
    for found, value in zip(run(import_model(path), tmp_path, feeds), wanted, strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-5, atol=1e-6)
