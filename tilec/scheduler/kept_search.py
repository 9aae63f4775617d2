"""Looks and tiles of groups, kept from one search to the next by content: groups of another model, or of the same one
after a change, that are alike are not priced again.

Keys are digests of what decides an entry: the content of the parts and how they are connected, sizes, objective and
target, and the files of the scheduler. Names are in none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from hashlib import sha256
from typing import Any, TypeVar

from tilec.scheduler.analysis.vector_iterator import Vector
from tilec.scheduler.target_model import TargetModel
from tilec.scheduler.tiling.register_tiles import RegisterTile
from tilec.scheduler.tiling.task_tiles import FirstLook, TaskTile

T = TypeVar("T")

DIGITS = 24

NAMELESS = Vector("none", "")
"""Stands for the vectors of kept tiles, which are found anew in the names of a part."""


@dataclass(frozen=True)
class KeptSearch:
    """The entries of a `scope` as they were read, of which a search takes those that it needs; `contents` are the
    digests of parts' contents by number."""

    scope: str
    entries: Mapping[str, Any]
    contents: dict[int, str] = field(default_factory=dict)

    def look(self, key: Any) -> FirstLook | None:
        """What a first look found of a group."""
        return self._read("look", key, _first_look)

    def tiles(self, key: Any) -> tuple[int, tuple[TaskTile, ...]] | None:
        """How many tiles of a group were asked for, and these."""
        return self._read("tiles", key, lambda found: (int(found[0]), _some(_task_tile, found[1])))

    def registers(self, key: Any) -> tuple[RegisterTile, ...] | None:
        """The register tiles of a part in a tile."""
        return self._read("registers", key, lambda found: _some(_register_tile, found))

    def _read(self, table: str, key: Any, read: Callable[[Any], T]) -> T | None:
        """An entry in its own type; None where there is none, or none that can be read."""
        name = self._name(table, key) if self.entries else None
        if name is None or name not in self.entries:
            return None
        try:
            return read(self.entries[name])
        except (AttributeError, LookupError, TypeError, ValueError):
            return None

    def number(self, number: int, content: object) -> None:
        """Take note of the content that has a number."""
        if number not in self.contents:
            self.contents[number] = _digest(repr(content))

    def _name(self, table: str, key: Any) -> str | None:
        """The key of an entry; None for one that depends on more than what it says."""
        if table == "registers":
            number, within = key
            content = self.contents.get(number)
            return _digest(f"{table} {content} {within!r}") if content is not None else None
        alone, group = (key[0], key[1]) if key[0] == "alone" else ("", key)
        parts, outputs, extents, shared, places = group
        if extents or shared:
            return None
        described = [(self.contents.get(number), names) for number, names in parts]
        if None in (content for content, _ in described):
            return None
        return _digest(f"{table} {alone} {(described, outputs, places)!r}")

    def new_entries(
        self,
        looks: Mapping[Any, FirstLook],
        tiles: Mapping[Any, tuple[int, tuple[TaskTile, ...]]],
        registers: Mapping[Any, tuple[RegisterTile, ...]],
    ) -> dict[str, Any]:
        """What a search remembers beyond what was read, as JSON by key."""
        found: dict[str, Any] = {}
        for key, look in looks.items():
            found[self._name("look", key) or ""] = list(look)
        for key, (count, found_tiles) in tiles.items():
            found[self._name("tiles", key) or ""] = [count, [_fields(tile) for tile in found_tiles]]
        for key, options in registers.items():
            found[self._name("registers", key) or ""] = [_fields(each) for each in options]
        return {name: value for name, value in found.items() if name and self.entries.get(name) != value}


def scope_of(target: TargetModel, *further: object) -> str:
    """The digest of what all entries of a search depend on."""
    plain = replace(target, widened=frozenset())
    return _digest(repr((plain, sorted(target.widened), further)))


def _fields(tile: TaskTile | RegisterTile) -> dict[str, Any]:
    """A tile as JSON, without vectors."""
    found = {each.name: getattr(tile, each.name) for each in fields(tile) if each.name != "vector"}
    if isinstance(tile, TaskTile):
        found["registers"] = [_fields(each) for each in tile.registers]
    return found


def _first_look(entry: Sequence[Any]) -> FirstLook:
    held, objective, hoped = entry
    return FirstLook(int(held), float(objective), float(hoped))


def _some(read: Callable[[Any], T], entries: Sequence[Any]) -> tuple[T, ...]:
    """Entries that are read. Raises ValueError for none: there are always some."""
    if not entries:
        raise ValueError("no entries")
    return tuple(map(read, entries))


def _task_tile(entry: Mapping[str, Any]) -> TaskTile:
    return TaskTile(**{**entry, "registers": _some(_register_tile, entry["registers"])})


def _register_tile(entry: Mapping[str, Any]) -> RegisterTile:
    return RegisterTile(vector=NAMELESS, **{name: _tuples(value) for name, value in entry.items()})


def _tuples(value: Any) -> Any:
    """Lists as tuples, at any depth: no field of a tile is a list."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:DIGITS]
