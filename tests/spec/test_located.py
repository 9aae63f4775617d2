"""YAML keeps its places; only plain data passes; pydantic's errors become sentences with a place."""

from typing import Literal

import pytest
from pydantic import Field

from tilec.errors import ConfigError
from tilec.spec.located import Spec, parse_yaml, validate
from tilec.spec.quantities import Bytes


class Leaf(Spec):
    capacity: Bytes = Field(gt=0)
    managed: Literal["explicit", "implicit"] = "explicit"


class Tree(Spec):
    name: str
    units: int = 1
    tolerance: float = 0.0
    leaves: tuple[Leaf, ...] = ()
    by_name: dict[str, Leaf] = Field(default_factory=dict)
    chosen: Leaf | None = None
    imported: int = Field(default=0, alias="import")


def test_plain_data_and_places() -> None:
    located = parse_yaml("a: 1\nb:\n  - x: 0x10\n    y: 1e-4\n  - [~, true, yes]\nc: 2024-01-01\n", "f.yaml")
    assert located.data == {"a": 1, "b": [{"x": 16, "y": 1e-4}, [None, True, "yes"]], "c": "2024-01-01"}
    assert located.place(("b", 0, "y")) == "f.yaml:4:8"
    assert located.place(("b", 0, "y"), key=True) == "f.yaml:4:5"
    assert located.place(("b", 1, 2)) == "f.yaml:5:15"
    assert located.place(("b", 7, "gone")) == "f.yaml:3:3"


def test_numbers_of_yaml_1_2() -> None:
    assert parse_yaml("a: 010\nb: 0o17\nc: 1_000\nd: -3\ne: '5'", "f").data == {
        "a": 10,
        "b": 15,
        "c": 1000,
        "d": -3,
        "e": "5",
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1\n", "f:2:1: not valid YAML: expected ',' or ']', but got '<stream end>'"),
        ("a: b: c", "f:1:5: not valid YAML: mapping values are not allowed here"),
        ("\ta: 1", "f:1:1: not valid YAML: found character '\\t' that cannot start any token"),
        ("a: *x", "f:1:4: not valid YAML: found undefined alias 'x'"),
        ("a: 1\n---\nb: 2", "f:2:1: not valid YAML: but found another document"),
        ("a: \x00", "f: not valid YAML: unacceptable character"),
        ("a: 1\na: 2\n", "f:2:1: key 'a' appears twice"),
        ("a: !!python/object/apply:os.system ['ls']", "f:1:4: tags are not allowed: "),
        ("a: !env HOME", "f:1:4: tags are not allowed: !env"),
        ("a: &x {b: 1}\nc:\n  <<: *x", "f:3:3: a key must be a plain word"),
        ("a: &x [*x]", "f:1:4: an alias inside what it stands for"),
        ("a: .nan", "f:1:4: .nan is not a number that can be used here"),
        ("[1, 2]: 3", "f:1:1: a key must be a plain word"),
        ("- 1", "f:1:1: expected keys and values"),
        ("", "f: expected keys and values"),
    ],
)
def test_only_plain_yaml_passes(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_yaml(text, "f")
    assert str(error.value).startswith(message)


def test_a_valid_file() -> None:
    tree = validate(Tree, parse_yaml("name: t\ntolerance: 1\nleaves: [{capacity: 1KiB}]\nimport: 3", "f"))
    assert tree == Tree.model_validate_json('{"name":"t","tolerance":1,"leaves":[{"capacity":"1KiB"}],"import":3}')
    assert tree.leaves[0].capacity == 1024


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: t\nunitss: 3", "f:2:1: unknown key 'unitss'\n  Did you mean 'units'?"),
        ("name: t\nimprot: 3", "f:2:1: unknown key 'improt'\n  Did you mean 'import'?"),
        (
            "name: t\nzzz: 3",
            "f:2:1: unknown key 'zzz'\n  Its keys are name, units, tolerance, leaves, by_name, chosen, import.",
        ),
        (
            "name: t\nleaves:\n  - capacty: 1B",
            "f:3:5: unknown key 'capacty'\n  Did you mean 'capacity'?\n  Also f:3:5: key 'capacity' is missing",
        ),
        (
            "name: t\nby_name: {l1: {capacity: 1B, manged: explicit}}",
            "f:2:30: unknown key 'manged'\n  Did you mean 'managed'?",
        ),
        ("name: t\nchosen: {capacity: 1B, size: 2}", "f:2:24: unknown key 'size'\n  Its keys are capacity, managed."),
        ("units: 3", "f:1:1: key 'name' is missing"),
        ("name: t\nunits: '3'", "f:2:8: expected integer, found '3'"),
        ("name: t\nunits: true", "f:2:8: expected integer, found True"),
        ("name: 3", "f:1:7: expected string, found 3"),
        ("name: t\nleaves: {a: 1}", "f:2:9: expected array, found keys and values"),
        (
            "name: t\nleaves: [{capacity: 1B, managed: maybe}]",
            "f:2:34: expected 'explicit' or 'implicit', found 'maybe'",
        ),
        ("name: t\nleaves:\n- capacity: -1KiB", "f:3:13: '-1KiB' is negative; bytes cannot be"),
        ("name: t\nleaves:\n- capacity: 1KB/s", "f:3:13: '1KB/s' has the unit 'KB/s'; did you mean 'KB'?"),
        ("name: t\nleaves:\n- capacity: 0B", "f:3:13: expected greater than 0, found '0B'"),
    ],
)
def test_problems_have_places(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        validate(Tree, parse_yaml(text, "f"))
    assert str(error.value) == message
    assert error.value.exit_code == 2
