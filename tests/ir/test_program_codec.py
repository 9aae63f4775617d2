"""Tile programs as JSON: equal after a round trip, readable, refused with a place when malformed."""

import json
from dataclasses import replace

import pytest

from tests.programs import buffer, convolution, flash, matmul
from tilec.artifact import canonical
from tilec.errors import ArtifactError
from tilec.ir.expr import Binary, Const, Var
from tilec.ir.program import Allocate, Barrier, Fill, LoadTiles, Loop, Program, StoreTiles
from tilec.ir.program_codec import program_from_json, program_to_json

ODD = Program(
    "odd",
    matmul().levels,
    ("N",),
    (buffer("A", "dram", "A[0:N]"),),
    (),
    (
        Allocate(buffer("A_s", "shared", "A[0:4]", "f16", layout=(0,), copies=3, offset=Const(64))),
        Allocate(buffer("A_t", "shared", "A[0:4]", "f16", offset=Binary("*", Var("N"), Const(16)))),
        Fill("A_s", float("nan")),
        Fill("A_s", float("-inf")),
        Fill("A_s", True),
        LoadTiles("A_s", "A", float("inf"), 2),
        Loop("i", Var("N"), (Barrier("core"),), "spread", "core"),
        StoreTiles("A", "A_s", (Const(0),), (Const(2),), "max"),
    ),
)


@pytest.mark.feature("W44")
@pytest.mark.parametrize("program", [matmul(cores=2), convolution(), flash(), ODD], ids=lambda p: p.name)
def test_round_trip(program: Program) -> None:
    text = canonical.pretty(program_to_json(program))
    again = program_from_json(json.loads(text))
    assert repr(again) == repr(program)
    assert canonical.pretty(program_to_json(again)) == text


def test_statements_are_readable() -> None:
    data = program_to_json(matmul(cores=2))
    (outer,) = data["body"]
    assert {k: v for k, v in outer.items() if k != "body"} == {
        "do": "for",
        "variable": "m1",
        "extent": 2,
        "run": "spread",
        "scope": "core",
    }
    assert outer["body"][1] == {"do": "fill", "buffer": "C_s", "value": 0.0}
    assert outer["body"][-1] == {"do": "store", "target": "C", "source": "C_s"}


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ({"do": "fil", "buffer": "C_s", "value": 0.0}, "did you mean 'fill'"),
        ({"buffer": "C_s"}, "key `do`"),
        ({"do": "fill", "buffer": "C_s"}, "'value' is missing"),
        ({"do": "for", "variable": "i", "extent": 2, "body": [], "run": "twice"}, "serial or spread"),
        ({"do": "load", "target": "C_s", "source": "C", "fill": "lots"}, "expected"),
    ],
)
def test_malformed_statements_are_refused(statement: object, message: str) -> None:
    data = program_to_json(replace(matmul(), body=()))
    with pytest.raises(ArtifactError, match=message):
        program_from_json({**data, "body": [statement]}, "3-kernels.json")
