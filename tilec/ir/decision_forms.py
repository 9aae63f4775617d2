"""The declaration of a decision: metadata of a field of `Variant` that says which names and numbers its value holds.

A form describes a value as a small tree. Everything that handles decisions (renaming, diff, names of kernels, checks;
`tilec.ir.decisions`) walks values along their forms, so that a new decision is a new field with its metadata.
"""

from __future__ import annotations

from dataclasses import MISSING, Field, dataclass, fields, replace
from functools import cache
from typing import Any, Literal, cast

NameKind = Literal["level", "node", "tensor", "spatial", "reduce", "iterator"]
"""Things that are called by name: a memory level; a node of the group; a tensor of the plan; a spatial iterator, a
reduce iterator, any iterator of a node."""

ITERATORS = frozenset({"spatial", "reduce", "iterator"})
"""Kinds of names that belong to a node."""

Effect = Literal["part", "task order", "reduce loop", "shared loop", "buffer", "asynchronous load", "code", "unchecked"]
"""When a decision shows in the tile program (`lower/checks/unused_decisions.py` has a rule for each): its node ends a
part at its level; its tile loops at its level are several that are spread; its level has reduce loops; its node leads a
shared loop that has steps; its tensor has a buffer at its level; a serial loop there loads its tensor ahead; only
in the code that a back end makes of the program; not checked."""


@dataclass(frozen=True, slots=True)
class Name:
    """A name. An iterator is one of the node that the decision is about, or, with `of`, of the node that this field
    of the same record names. An `optional` one may be empty."""

    kind: NameKind
    of: str = ""
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Plain:
    """A number, a text or a flag; integers below `least` are refused."""

    least: int | None = None


@dataclass(frozen=True, slots=True)
class Items:
    """A tuple of parts of one form; `distinct` where none may stand in it twice."""

    item: Form
    distinct: bool = False


@dataclass(frozen=True, slots=True)
class Dimensions:
    """An order of the dimensions of the tensor that the decision is about: all of them, or empty for row-major."""


@dataclass(frozen=True, slots=True)
class Members:
    """A tuple of names in any order, for which one thing is decided; `shown` says in a diff what."""

    name: Name
    shown: str


@dataclass(frozen=True, slots=True)
class Table:
    """A mapping from names to parts of one form."""

    key: Name
    item: Form


@dataclass(frozen=True, slots=True)
class Scalar:
    """A scalar expression in the iterators of the node that the decision is about; reads tensors of the group."""


@dataclass(frozen=True, slots=True)
class Record:
    """A dataclass whose fields carry forms of their own (`form_of`)."""

    cls: type[Any]


Form = Name | Plain | Items | Dimensions | Members | Table | Scalar | Record


@dataclass(frozen=True, slots=True)
class Decision:
    """What a field of `Variant` decides.

    kind           its word in a diff: `tile`
    what           its words in an error: `order of loops`
    form           what its value holds, tables from the outside to the inside
    effect         when it shows in the program
    always_signed  whether the digest in a kernel's name has it where nothing is decided: so for the first ones, whose
                   names would change otherwise
    name, default  of the field, filled in by `decisions_of`
    """

    kind: str
    what: str
    form: Form
    effect: Effect = "unchecked"
    always_signed: bool = False
    name: str = ""
    default: Any = None


LEVEL, NODE, TENSOR = Name("level"), Name("node"), Name("tensor")
SPATIAL, REDUCE, ITERATOR = Name("spatial"), Name("reduce"), Name("iterator")
PLAIN, COUNT = Plain(), Plain(least=1)


def decides(
    kind: str, what: str, form: Form, effect: Effect = "unchecked", *, always_signed: bool = False
) -> dict[str, Decision]:
    """Metadata of a field of `Variant` that is a decision."""
    return {"decision": Decision(kind, what, form, effect, always_signed)}


def holds(form: Form) -> dict[str, Form]:
    """Metadata of a field of a record inside a decision."""
    return {"form": form}


def decisions_of(cls: type[Any]) -> tuple[Decision, ...]:
    """The decisions that a class of variants declares, in the order of its fields."""
    return _decisions(cast(Any, cls))


def form_of(cls: type[Any]) -> tuple[tuple[str, Form], ...]:
    """Field -> form of a record; a field without metadata is plain."""
    return _forms(cast(Any, cls))


@cache
def _decisions(cls: Any) -> tuple[Decision, ...]:
    declared: tuple[Field[Any], ...] = fields(cls)
    return tuple(
        replace(field.metadata["decision"], name=field.name, default=_default(field))
        for field in declared
        if "decision" in field.metadata
    )


def _default(field: Field[Any]) -> Any:
    """What stands in a field where nothing is decided; an empty table in one that must be given."""
    if field.default_factory is not MISSING:
        return field.default_factory()
    return {} if field.default is MISSING else field.default


@cache
def _forms(cls: Any) -> tuple[tuple[str, Form], ...]:
    declared: tuple[Field[Any], ...] = fields(cls)
    return tuple((field.name, field.metadata.get("form", PLAIN)) for field in declared)
