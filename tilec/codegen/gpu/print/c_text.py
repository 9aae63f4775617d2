"""C++ text: lines with indentation, identifiers, element types, literals."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import inf, isinf, isnan

import numpy as np

from tilec.codegen.gpu.print.reserved_names import reserved_names
from tilec.ir.expr import Scalar
from tilec.ir.types import HALVES, TTYPES

C_TYPES = {
    "f64": "double",
    "f32": "float",
    "f16": "f16",
    "bf16": "bf16",
    "i64": "long long",
    "i32": "int",
    "i16": "short",
    "i8": "signed char",
    "u64": "unsigned long long",
    "u32": "unsigned",
    "u16": "unsigned short",
    "u8": "unsigned char",
    "bool": "bool",
}
"""tType -> the type that a buffer of it holds."""


def storage_type(ttype: str) -> str:
    """The C++ type of an element in memory."""
    return C_TYPES[ttype]


def value_type(ttype: str) -> str:
    """The C++ type in which a value is computed: halves are floats."""
    return "float" if ttype in HALVES else storage_type(ttype)


def literal(value: Scalar, ttype: str) -> str:
    """A constant of the computed type of `ttype`."""
    kind = TTYPES[ttype].kind
    if kind == "bool":
        return "true" if value else "false"
    if kind == "float":
        return _float(float(value)) if ttype == "f64" else _float(_single(float(value)), "f")
    number = _integer(value, ttype)
    suffix = {"i64": "LL", "u64": "ULL", "u32": "U"}.get(ttype, "")
    if ttype in ("i32", "i64") and number == -(1 << (TTYPES[ttype].bits - 1)):
        return f"({number + 1}{suffix} - 1)"
    text = f"{number}{suffix}"
    return text if ttype in ("i64", "u64", "i32", "u32") and number >= 0 else f"({value_type(ttype)}){_signed(text)}"


def _signed(text: str) -> str:
    return f"({text})" if text.startswith("-") else text


def _integer(value: Scalar, ttype: str) -> int:
    """The integer nearest to a value that the type holds; of neutral elements the ends of its range."""
    bits, signed = TTYPES[ttype].bits, TTYPES[ttype].kind == "int"
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    if isinstance(value, float) and isinf(value):
        return high if value > 0 else low
    whole = int(value) & ((1 << bits) - 1)
    return whole - (1 << bits) if whole > high else whole


def _single(value: float) -> float:
    """The nearest number of f32: the shortest text of a number half-way between two may round to the other one."""
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def _float(value: float, suffix: str = "") -> str:
    if isnan(value):
        return "T_NAN" if suffix else "((double)T_NAN)"
    if value in (inf, -inf):
        text = "T_INF" if suffix else "((double)T_INF)"
        return text if value > 0 else f"(-{text})"
    text = f"{value!r}{suffix}"
    return f"({text})" if text.startswith("-") else text


class Names:
    """C++ identifiers of the names of a program, each its own."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._taken: set[str] = set(reserved_names())

    def __getitem__(self, name: str) -> str:
        if name not in self._known:
            self._known[name] = self.fresh(re.sub(r"\W", "_", name))
        return self._known[name]

    def assign(self, texts: Mapping[str, str]) -> None:
        """Give names identifiers that nothing else gets."""
        self._known |= texts
        self._taken |= set(texts.values())

    def bind(self, name: str) -> str:
        """The identifier of a variable or an array that begins: of one that a pass added, `#n` or `#to#x`, a new one
        wherever it does."""
        if name.startswith("#"):
            self._known[name] = self.fresh(name.split("#")[1])
        return self[name]

    def fresh(self, wanted: str) -> str:
        """An identifier that nothing else has: the wanted one, or that with a number."""
        wanted = f"v{wanted}" if wanted[:1].isdigit() or not wanted.strip("_") else wanted
        text, number = wanted, 2
        while text in self._taken:
            text, number = f"{wanted}_{number}", number + 1
        self._taken.add(text)
        return text


class Lines:
    """Lines of text; blocks in braces are indented."""

    def __init__(self, depth: int = 0) -> None:
        self._lines: list[str] = []
        self._depth = depth

    def add(self, line: str) -> None:
        """One more line."""
        self._lines.append("  " * self._depth + line if line else "")

    @contextmanager
    def block(self, head: str = "") -> Iterator[None]:
        """A block that begins with `head`."""
        self.add(f"{head} {{" if head else "{")
        self._depth += 1
        yield
        self._depth -= 1
        self.add("}")

    @property
    def text(self) -> str:
        """All lines."""
        return "".join(f"{line}\n" for line in self._lines)
