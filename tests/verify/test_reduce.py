"""Reducing without a compiler: where the search begins, widens and gives up, and how many parts are tried."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from cli import models

from tilec.errors import TilecError
from tilec.spec.recipe import VerifyOptions
from tilec.verify import reduce as module
from tilec.verify.failure_trial import Failure
from tilec.verify.locate import Divergence
from tilec.verify.reduce import Case, reduce
from verify.plans import node, plan_of, tensor

MISMATCH = Failure("mismatch", "y: 2 instead of 1 at [0]")


class Bench:
    """Fails for parts with certain operators."""

    needed: frozenset[str] = frozenset()
    first: Failure | None = MISMATCH
    kind = "mismatch"

    def __init__(self, *_: object) -> None:
        self.trials = 0
        self.seen: list[list[str]] = []

    def __enter__(self):
        return self

    def __exit__(self, *_: object) -> None:
        return

    def call(self, *_: object):
        return {}

    def judged(self, *_: object):
        return self.first

    def failure(self, part):
        self.trials += 1
        found = {each.op_type for each in part.proto.graph.node}
        return Failure(self.kind, "here\nand more") if self.needed <= found else None


@pytest.fixture
def case(tmp_path, monkeypatch):
    path = models.mlp(tmp_path / "model.onnx")
    shapes = {"x": (4, 16), "h0": (4, 32), "h1": (4, 32), "h2": (4, 32), "y": (4, 8)}

    class Trace:
        def __init__(self, *_: object) -> None:
            return

        def close(self) -> None:
            return

        def __call__(self, names):
            return {name: np.full(shapes[name], 0.5, np.float32) for name in names}

    plan = plan_of([node("y[i] = x[i]", {"i": 4})], {"x": tensor("f32", 4)}, ["y"])
    relu = replace(plan.groups[0], nodes=(replace(plan.groups[0].nodes[0], origin=("relu",)),))
    monkeypatch.setattr(module, "Bench", Bench)
    monkeypatch.setattr(module, "Trace", Trace)
    monkeypatch.setattr(module, "locate", lambda *_: Divergence("codegen", "y", "relu", "wrong"))
    return Case(tmp_path, replace(plan, groups=(relu,)), path, None, {}, Path(tmp_path / "scratch"))


def reduced(case, monkeypatch, **given):
    for name, value in given.items():
        monkeypatch.setattr(Bench, name, value)
    said: list[str] = []
    return reduce(case, VerifyOptions(), said.append), said


def operators(found):
    return [each.op_type for each in found.part.proto.graph.node]


def test_the_search_begins_with_the_group_that_diverges(case, monkeypatch):
    found, said = reduced(case, monkeypatch, needed=frozenset({"Relu"}))
    assert operators(found) == ["Relu"]
    assert found.nodes == 4
    assert found.finished
    assert said[1].startswith("First diverging group: y (relu): wrong")
    assert said[2] == "1 node fails: here"
    assert found.failure.text == "here\nand more"


def test_it_widens_until_the_failure_is_there(case, monkeypatch):
    found, _ = reduced(case, monkeypatch, needed=frozenset({"Relu", "MatMul"}))
    assert operators(found) == ["Relu", "MatMul"]
    assert onnx.shape_inference.infer_shapes(found.part.proto)


def test_a_crash_has_no_group_and_is_looked_for_in_all(case, monkeypatch):
    crash = Failure("crash", "was ended by signal SIGSEGV")
    found, said = reduced(case, monkeypatch, needed=frozenset({"Add"}), first=crash, kind="crash")
    assert operators(found) == ["Add"]
    assert said[0] == "crash: was ended by signal SIGSEGV"


def test_a_group_that_is_known_to_be_wrong_is_not_looked_for(case, monkeypatch):
    monkeypatch.setattr(module, "locate", None)
    wrong = Failure("wrong group", "...", Divergence("codegen", "y", "relu", "0.0 instead of nan"))
    found, said = reduced(case, monkeypatch, needed=frozenset({"Relu"}), first=wrong, kind="wrong group")
    assert operators(found) == ["Relu"]
    assert said[1].startswith("First diverging group: y (relu): 0.0 instead of nan")


def test_another_failure_does_not_count(case, monkeypatch):
    with pytest.raises(TilecError, match="right when it is compiled anew"):
        reduced(case, monkeypatch, kind="crash")


def test_nothing_to_reduce(case, monkeypatch):
    with pytest.raises(TilecError, match="nothing to reduce"):
        reduced(case, monkeypatch, first=None)


def test_the_search_ends_after_so_many_parts(case, monkeypatch):
    monkeypatch.setattr(module, "MOST_TRIALS", 3)
    found, _ = reduced(case, monkeypatch, needed=frozenset({"Relu", "MatMul"}))
    assert found.trials == 3
    assert not found.finished
