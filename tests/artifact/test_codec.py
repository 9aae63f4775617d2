"""Dataclasses to JSON and back; errors carry the path into the file."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar, Literal

import pytest

from tilec.artifact import decode, encode
from tilec.errors import ArtifactError


class Combine(Enum):
    NONE = "none"
    SUM = "sum"


@dataclass(frozen=True)
class Size:
    text: str

    def to_json(self) -> str:
        return self.text

    @classmethod
    def from_json(cls, value: Any) -> "Size":
        if not isinstance(value, str) or not value.isidentifier():
            raise ValueError(f"not a size: {value!r}")
        return cls(value)


@dataclass(frozen=True)
class Load:
    kind: ClassVar[str] = "load"
    tensor: str


@dataclass(frozen=True)
class Store:
    kind: ClassVar[str] = "store"
    tensor: str
    combine: Combine = Combine.NONE


@dataclass(frozen=True)
class Program:
    name: str
    shape: tuple[int | Size, ...]
    body: tuple[Load | Store, ...] = ()
    policy: Literal["clip", "shift"] = "clip"
    parent: str | None = None
    cost: float = 0.0
    tiles: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("a program needs a name")


FULL = Program("p", (1, Size("batch")), (Load("x"), Store("y", Combine.SUM)), "shift", "q", 2.5, {"x": (0, 4)})


def test_round_trip() -> None:
    assert encode(FULL) == {
        "name": "p",
        "shape": [1, "batch"],
        "body": [{"kind": "load", "tensor": "x"}, {"kind": "store", "tensor": "y", "combine": "sum"}],
        "policy": "shift",
        "parent": "q",
        "cost": 2.5,
        "tiles": {"x": [0, 4]},
    }
    assert decode(Program, encode(FULL)) == FULL


def test_defaults_are_left_out() -> None:
    assert encode(Program("p", ())) == {"name": "p", "shape": []}
    assert decode(Program, {"name": "p", "shape": [], "cost": 2}) == Program("p", (), cost=2.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"shpe": []}, "f: unknown key 'shpe'\n  Did you mean 'shape'?"),
        ({"name": 3}, "f: name: expected str, found 3"),
        ({"name": ""}, "f: a program needs a name"),
        ({"shape": [True]}, "f: shape[0]: expected int or Size, found True"),
        ({"shape": [[]]}, "f: shape[0]: expected int or Size, found a list"),
        ({"policy": "peel"}, "f: policy: expected 'clip' or 'shift', found 'peel'"),
        ({"tiles": {"x": [1]}}, "f: tiles.x: expected tuple, found a list"),
        ({"body": [{"kind": "store"}]}, "f: body[0]: key 'tensor' is missing"),
        ({"body": [{"kind": "cake"}]}, "f: body[0]: expected Load or Store, found an object"),
        (
            {"body": [{"kind": "store", "tensor": "y", "combine": "min"}]},
            "f: body[0].combine: expected Combine, found 'min'",
        ),
    ],
)
def test_errors_name_the_path(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ArtifactError) as error:
        decode(Program, {"name": "p", "shape": [], **change}, "f")
    assert str(error.value) == message


def test_missing_key_and_wrong_root() -> None:
    with pytest.raises(ArtifactError, match="f: key 'name' is missing"):
        decode(Program, {"shape": []}, "f")
    with pytest.raises(ArtifactError, match="f: expected an object, found null"):
        decode(Program, None, "f")


def test_what_has_no_json_form_is_a_bug_of_the_caller() -> None:
    with pytest.raises(TypeError, match="no JSON form for object"):
        encode(object())
