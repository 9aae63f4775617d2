"""Operations on the decisions of a variant, whatever fields it has: they follow the forms that the fields declare."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from tilec.artifact import encode
from tilec.ir.decision_forms import (
    ITERATORS,
    Decision,
    Dimensions,
    Form,
    Items,
    Members,
    Name,
    Plain,
    Record,
    Scalar,
    Table,
    decisions_of,
    form_of,
)
from tilec.ir.expr import Expr, Var, rename_tensors, substitute
from tilec.ir.plan import Variant
from tilec.ir.text import text_of

V = TypeVar("V", bound=Variant)

Owners = Mapping[str, str]
"""Node whose iterators stand in a value: "" -> the node that the decision is about, field of a record -> the node that
it names."""


@dataclass(frozen=True, slots=True)
class Renaming:
    """Tensor or node -> new name, and node (by its old name) -> iterator -> new name; what is absent stays."""

    names: Mapping[str, str]
    iterators: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def __call__(self, name: Name, value: str, owners: Owners) -> str:
        """`value`, a name of the kind that `name` says, as it is called now."""
        if name.kind == "level":
            return value
        if name.kind in ITERATORS:
            return self.iterators.get(owners.get(name.of, ""), {}).get(value, value)
        return self.names.get(value, value)


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that a variant decides. `level` and `subject` (a node or a tensor) are empty where the decision is not
    about one; `form` describes `value`."""

    decision: Decision
    level: str
    subject: str
    form: Form
    value: Any


@dataclass(frozen=True, slots=True)
class Leaf:
    """A part of a decision that can be right or wrong by itself: a name, a number, an order. `owner` is the node whose
    iterators it names, `iterator` the one that it belongs to; of a key, `level` and `subject` are those around it."""

    decision: Decision
    level: str
    subject: str
    owner: str
    form: Form
    value: Any
    iterator: str = ""


def renamed(variant: V, renaming: Renaming) -> V:
    """The same decisions about the nodes, tensors and iterators of other names."""
    values = {of.name: _renamed(of.form, getattr(variant, of.name), renaming, {}) for of in decisions_of(type(variant))}
    return replace(variant, **values)


def entries(variant: Variant) -> Iterator[Entry]:
    """Everything that a variant decides, one entry for each level and subject, in the order of the fields."""
    for of in decisions_of(type(variant)):
        value = getattr(variant, of.name)
        if value != of.default:
            yield from _entries(Entry(of, "", "", of.form, value))


def leaves(variant: Variant) -> Iterator[Leaf]:
    """Every name, number and order in the decisions of a variant: what a verifier looks at."""
    for of in decisions_of(type(variant)):
        yield from _leaves(Leaf(of, "", "", "", of.form, getattr(variant, of.name)), {})


def fact(entry: Entry) -> dict[str, Any] | list[Any] | str | int:
    """The value of an entry as people read it in a diff: `{"m": 4}`, `["smem"]`, `"shift"`."""
    shown = _shown(entry.form, entry.value)
    assert isinstance(shown, dict | list | str | int)
    return shown


def signed(variant: Variant) -> dict[str, Any]:
    """The decisions as JSON for a digest, by field. Tables of iterators are lists: their order counts."""
    values = ((of, getattr(variant, of.name)) for of in decisions_of(type(variant)))
    return {of.name: _signed(of.form, value) for of, value in values if of.always_signed or value != of.default}


def without_code(variant: V) -> V:
    """The variant of which the rules of a back end have decided nothing."""
    return replace(variant, **{of.name: of.default for of in decisions_of(type(variant)) if of.effect == "code"})


def depth(decision: Decision) -> int:
    """Number of tables around an entry's value: 2 for level -> node -> value."""
    form, tables = decision.form, 0
    while isinstance(form, Table) and form.key.kind not in ITERATORS:
        form, tables = form.item, tables + 1
    return tables


def tiled_like(variant: V, node: str, name: str) -> V:
    """The decisions about the tile of `node` as decisions about `name`, which is not reduced: no others about tiles and
    reduce loops."""
    values: dict[str, Any] = {}
    for of in decisions_of(type(variant)):
        table = getattr(variant, of.name)
        if of.effect in ("part", "task order"):
            values[of.name] = {level: {name: nodes[node]} for level, nodes in table.items() if node in nodes}
        elif of.effect == "reduce loop":
            values[of.name] = {}
    return replace(variant, **values)


def _renamed(form: Form, value: Any, renaming: Renaming, owners: Owners) -> Any:
    match form:
        case Name():
            return renaming(form, value, owners)
        case Items(item):
            return tuple(_renamed(item, each, renaming, owners) for each in value)
        case Members(name):
            return tuple(renaming(name, each, owners) for each in value)
        case Table(key, item):
            return {
                renaming(key, k, owners): _renamed(item, each, renaming, _inside(key, k, owners))
                for k, each in value.items()
            }
        case Scalar():
            iterators: dict[str, Expr] = {i: Var(n) for i, n in renaming.iterators.get(owners.get("", ""), {}).items()}
            return rename_tensors(substitute(value, iterators), renaming.names)
        case Record(cls):
            owners = _named_in(cls, value, owners)
            parts = {part: _renamed(of, getattr(value, part), renaming, owners) for part, of in form_of(cls)}
            return replace(value, **parts)
        case Plain() | Dimensions():
            return value


def _entries(entry: Entry) -> Iterator[Entry]:
    match entry.form:
        case Table(Name(kind), item) if kind not in ITERATORS:
            for key, value in entry.value.items():
                level, subject = (key, entry.subject) if kind == "level" else (entry.level, key)
                yield from _entries(Entry(entry.decision, level, subject, item, value))
        case Members(_, shown):
            for name in entry.value:
                yield Entry(entry.decision, entry.level, name, Plain(), shown)
        case Table() if not entry.value:
            pass
        case _:
            yield entry


def _leaves(leaf: Leaf, owners: Owners) -> Iterator[Leaf]:
    def part(form: Form, value: Any, of: str = "", **around: Any) -> Leaf:
        return replace(leaf, form=form, value=value, owner=owners.get(of, ""), **around)

    match leaf.form:
        case Table(key, item):
            for name, value in leaf.value.items():
                yield part(key, name, key.of)
                around = "level" if key.kind == "level" else "iterator" if key.kind in ITERATORS else "subject"
                yield from _leaves(part(item, value, **{around: name}), _inside(key, name, owners))
        case Members(name):
            yield from (part(name, each) for each in leaf.value)
        case Items(item, distinct):
            if distinct:
                yield part(leaf.form, leaf.value, item.of if isinstance(item, Name) else "")
            else:
                for each in leaf.value:
                    yield from _leaves(part(item, each), owners)
        case Record(cls):
            owners = _named_in(cls, leaf.value, owners)
            for name, of in form_of(cls):
                yield from _leaves(part(of, getattr(leaf.value, name)), owners)
        case Name(_, of):
            yield part(leaf.form, leaf.value, of)
        case Plain() | Dimensions() | Scalar():
            yield part(leaf.form, leaf.value)


def _shown(form: Form, value: Any) -> Any:
    match form:
        case Table(_, item):
            return {key: _shown(item, each) for key, each in sorted(value.items())}
        case Items(item):
            return [_shown(item, each) for each in value]
        case Dimensions() | Members():
            return list(value)
        case Scalar():
            return text_of(value)
        case Record(cls):
            parts = [_shown(of, getattr(value, part)) for part, of in form_of(cls)]
            return [word for part in parts for word in _words(part)]
        case _:
            return value


def _words(part: Any) -> list[Any]:
    if isinstance(part, dict):
        return [f"{key} with {value}" for key, value in sorted(part.items())]
    return part if isinstance(part, list) else [part]


def _signed(form: Form, value: Any) -> Any:
    match form:
        case Table(Name(kind), item):
            if kind in ITERATORS:
                return [[key, _signed(item, each)] for key, each in value.items()]
            return {key: _signed(item, each) for key, each in value.items()}
        case Members():
            return sorted(value)
        case _:
            return encode(value)


def _inside(key: Name, value: str, owners: Owners) -> Owners:
    """Owners below a key: the first node or tensor on the way is what the decision is about."""
    return owners if key.kind == "level" or key.kind in ITERATORS or "" in owners else {**owners, "": value}


def _named_in(cls: type[Any], value: Any, owners: Owners) -> Owners:
    """Owners inside a record: its fields that name nodes."""
    named = {part: getattr(value, part) for part, of in form_of(cls) if isinstance(of, Name) and of.kind == "node"}
    return {**owners, **named}
