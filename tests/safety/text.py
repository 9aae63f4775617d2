"""Mistakes in JSON and YAML: of their characters, and of the values wherever they stand."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
from ruamel.yaml import YAML

from tests.safety.protobuf import BYTE_MISTAKES

Random = np.random.Generator

DEVICE = (Path(__file__).parents[2] / "devices" / "avx2.yaml").read_text(encoding="utf-8")

RECIPE = """
kind: compile
device: a100
shapes: {batch: 4, length: {range: [1, 64], divisor: 2, likely: [2, 4]}}
types: {"w*": f32}
import: {passes: null}
schedule: {fusion: register, objective: time, budget: 20}
codegen: {threads: 2, processor: generic, features: [+avx2]}
verify: {seeds: [0, 1], tolerance: 1.0e-4, reference: onnxruntime}
fallback: allow
"""

VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1,
    3.5,
    1e308,
    2**31,
    2**63,
    -(2**63),
    10**30,
    "",
    "x" * 50000,
    "\ud83d\ude00",
    "a\x00b",
    "../../../etc/passwd",
    "/etc/passwd",
    "C:\\x",
    "NaN",
    "9" * 5000,
    "1e999GB/s",
    "1e999999999B",
    "-5KiB",
    "0KiB",
    "1KiB",
    "__import__('os').system('true')",
    [],
    {},
    [[[[]]]],
    [0] * 1000,
    {"a": {"a": {}}},
    {"kind": "x"},
)

TEXTS = (
    "i",
    "i * 1000000",
    "-i - 1",
    "i - 1000",
    "99999999999999999999",
    "1 / 0",
    "i // 0",
    "i % 0",
    "a[b[c[i]]]",
    "sum(i, x[i])",
    "(" * 300 + "i" + ")" * 300,
    "i" + " + i" * 3000,
    "-" * 3000 + "i",
    "lambda: 0",
    "exec('1')",
    "where(i < 3, i, -5)",
    "f32[4]",
    "f32[1099511627776, 1099511627776]",
    "f32[-1]",
    "f32[i]",
    "y[i] = x[i + 1]",
    "y[i, j] = x[i, j + 1]",
    "nan",
)
"""Expressions and tensors that stand where they should not."""


def places(data: Any) -> list[tuple[Any, Any]]:
    """(object or list, key) of everything in a tree."""
    found: list[tuple[Any, Any]] = []
    pending = [data]
    while pending:
        inside = pending.pop()
        keys = list(inside) if isinstance(inside, dict) else range(len(inside)) if isinstance(inside, list) else ()
        found += [(inside, key) for key in keys]
        pending += [inside[key] for key in keys]
    return found


def value_mistake(data: Any, random: Random) -> Any:
    """The tree with one value lost, doubled, moved, renamed or replaced."""
    data = copy.deepcopy(data)
    known = places(data)
    inside, key = known[random.integers(len(known))]
    old = inside[key]
    match random.integers(7):
        case 0:
            del inside[key]
        case 1 if isinstance(inside, list):
            inside.insert(int(random.integers(len(inside) + 1)), copy.deepcopy(old))
        case 1:
            inside[f"{key}x"] = inside.pop(key)
        case 2:
            other, at = known[random.integers(len(known))]
            inside[key] = copy.deepcopy(other[at])
        case 3 if isinstance(old, int) and not isinstance(old, bool):
            inside[key] = old + int(random.choice([-64, -1, 1, 64, 1 << 20]))
        case 3 | 4 if isinstance(old, str):
            inside[key] = TEXTS[random.integers(len(TEXTS))]
        case _:
            inside[key] = VALUES[random.integers(len(VALUES))]
    return data


def json_mistake(text: str, random: Random) -> bytes:
    """A mistake in a JSON text: one in four of its bytes, else of its values."""
    if random.random() < 0.25:
        return BYTE_MISTAKES[random.integers(len(BYTE_MISTAKES))](text.encode(), random)
    return json.dumps(value_mistake(json.loads(text), random)).encode()


def yaml_mistake(text: str, random: Random) -> bytes:
    """A mistake in a YAML text: one in three of its bytes, else of its values (JSON is YAML)."""
    if random.random() < 0.33:
        return BYTE_MISTAKES[random.integers(len(BYTE_MISTAKES))](text.encode(), random)
    return json.dumps(value_mistake(YAML(typ="safe").load(text), random)).encode()


def _bomb(levels: int) -> str:
    """Aliases of aliases: 9**levels values."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]" for level in range(1, levels)]
    return "\n".join(lines) + "\n"


HOSTILE_YAML: dict[str, str | bytes] = {
    "empty": "",
    "null": "null",
    "scalar": "just words",
    "list": "- a\n- b\n",
    "binary": bytes(range(256)),
    "utf-16": "name: x\n".encode("utf-16"),
    "zero": "name: a\0b\n",
    "control": "name: \x07\n",
    "tabs": "name:\n\tx: 1\n",
    "bomb": _bomb(9),
    "deep-list": "a: " + "[" * 1500 + "]" * 1500,
    "deep-map": "a: " + "{a: " * 1500 + "}" * 1500,
    "deep-indent": "\n".join(" " * i + f"k{i}:" for i in range(2000)),
    "self": "&a {b: *a}",
    "self-list": "a: &a [*a]",
    "merge": "base: &b {name: x}\n<<: *b\n",
    "tag": "!!python/object/apply:os.system ['true']",
    "tag-inside": "name: !!python/name:os.system\n",
    "own-tag": "name: !own x\n",
    "set": "name: !!set {a, b}\n",
    "binary-tag": "name: !!binary aGVsbG8=\n",
    "twice": "name: a\nname: b\n",
    "two-documents": "name: a\n---\nname: b\n",
    "directive": "%YAML 9.9\n---\nname: a\n",
    "key-list": "[a, b]: 1\n",
    "key-map": "{a: b}: 1\n",
    "key-number": "1: 2\n1.5: 3\nnull: 4\ntrue: 5\n",
    "huge-integer": "name: " + "9" * 10000 + "\n",
    "hex": "name: 0x" + "f" * 100000 + "\n",
    "sexagesimal": "name: 1:2:3:4\n",
    "float": "name: 1e99999\n",
    "nan": "name: .nan\n",
    "date": "name: 2001-12-14t21:59:43.10-05:00\n",
    "long-key": "? " + "k" * 200000 + "\n: 1\n",
    "alias-unknown": "name: *nobody\n",
    "unclosed": 'name: "abc\n',
    "surrogate": 'name: "\\ud800"\n',
    "jinja": "name: {{ 7 * 7 }}\n",
    "recipe-device": "kind: compile\ndevice: ../../../../etc/passwd\n",
    "recipe-itself": "kind: compile\ndevice: spec.yaml\n",
    "recipe-huge-shape": "kind: compile\nshapes: {batch: 99999999999999999999}\n",
    "recipe-negative-shape": "kind: compile\nshapes: {batch: -4}\n",
    "recipe-budget": "kind: compile\nschedule: {budget: 999999999999}\n",
    "recipe-kind": "kind: bounds\n",
}
"""Name -> a file that claims to be a device or a recipe."""
