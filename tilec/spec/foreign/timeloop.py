"""Timeloop's architectures: trees of subtrees (0.2, 0.3) and lists of nodes (0.4).

Bandwidths are words per cycle of one instance, capacities lines of `width` bits, a name `PE[0..15]` stands for 16
instances.  Energies come from an energy table (`ERT`) in the same file, in picojoules, or not at all.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tilec.errors import ConfigError
from tilec.spec.foreign.architecture import (
    MOST_JOULES,
    WIDEST,
    Architecture,
    Compute,
    Memory,
    Notes,
    Reader,
    side_by_side,
)
from tilec.spec.located import TAG, KeyPath, Located

_STORAGE = ("dram", "sram", "regfile", "buffer", "storage", "register", "memory")
_COMPUTE = ("mac", "compute", "multiplier", "alu", "fpu")
"""Parts of the names of classes."""

_RANGE = re.compile(r"(.+?)\[\s*(\d+)\s*\.\.\s*(\d+)\s*\]")
_SIZES = ("entries", "depth", "memory_depth", "sizeKB")
_KNOWN = {
    *("width", "memory_width", "datawidth", "word_bits", "block_size", "cluster_size", "global_cycle_seconds"),
    *("read_bandwidth", "write_bandwidth", "shared_bandwidth", "rw_bandwidth", "bandwidth", "instances", "meshX"),
    *("meshY", "technology", "multiplier_width", "adder_width", "exponent", "mantissa", *_SIZES),
}
"""Attributes that are read, or that say nothing about speed or size."""

_CYCLE = 1e-9
"""Seconds of a cycle where no file tells them."""


@dataclass(frozen=True)
class _Component:
    """A component with all attributes that hold for it; `instances` of it in the whole architecture."""

    name: str
    kind: str
    instances: int
    path: KeyPath
    attributes: dict[str, Any]
    keep: frozenset[str]


def read(located: Located, notes: Notes) -> Architecture:
    """The architecture under `architecture`. Raises ConfigError with the place of what makes no sense."""
    reader = Reader(located, notes)
    top: KeyPath = ("architecture",)
    given = reader.mapping(top)
    if "nodes" in given:
        components = list(_of_nodes(reader, (*top, "nodes"), {}, [1]))
    elif "subtree" in given:
        components = list(_of_subtrees(reader, (*top, "subtree"), {}, 1))
    else:
        raise ConfigError("neither 'nodes' nor 'subtree'", located.place(top), "Timeloop 3 and 4 have one of them.")
    notes.drop("file", [key for key in located.data if key not in ("architecture", "ERT")])
    memories: list[Memory] = []
    compute: list[_Component] = []
    instances = 1
    for each in components:
        if any(word in each.kind for word in _STORAGE):
            if each.instances % instances:
                raise ConfigError(
                    f"{each.instances} instances cannot share {instances} of the memory below", located.place(each.path)
                )
            memories.append(_memory(reader, each, each.instances // instances))
            instances = each.instances
        elif any(word in each.kind for word in _COMPUTE):
            compute.append(each)
        else:
            notes.drop(each.name, [f"the whole component of class {each.kind or 'none'!r}"])
    units = tuple(_compute(reader, each, -(-each.instances // instances)) for each in compute)
    return Architecture(side_by_side(memories, notes), units)


def _ranged(name: str) -> tuple[str, int]:
    """`PE[0..15]` -> PE, 16."""
    match = _RANGE.fullmatch(name)
    return (match[1], max(1, int(match[3]) - int(match[2]) + 1)) if match else (name, 1)


def _plain(attributes: dict[str, Any]) -> dict[str, Any]:
    """Attributes with underscores; both spellings occur."""
    return {key.replace("-", "_"): value for key, value in attributes.items()}


def _of_subtrees(reader: Reader, path: KeyPath, around: dict[str, Any], count: int) -> Iterator[_Component]:
    """Components of trees, each before what is inside."""
    for position in range(len(reader.listing(path))):
        tree = (*path, position)
        _, times = _ranged(reader.name(tree))
        attributes = {**around, **_plain(reader.mapping((*tree, "attributes")))}
        for place in range(len(reader.listing((*tree, "local")))):
            local = (*tree, "local", place)
            name, copies = _ranged(reader.name(local))
            own = {**attributes, **_plain(reader.mapping((*local, "attributes")))}
            total = count * times * copies
            if "instances" in reader.mapping((*local, "attributes")):
                total = reader.whole((*local, "attributes", "instances")) or total
            kind = str(reader.mapping(local).get("class", ""))
            yield _Component(name, kind.lower(), total, local, own, frozenset())
        yield from _of_subtrees(reader, (*tree, "subtree"), attributes, count * times)


def _of_nodes(reader: Reader, path: KeyPath, around: dict[str, Any], count: list[int]) -> Iterator[_Component]:
    """Components of a list of nodes, each inside all before it; `count` is how many instances there are so far."""
    attributes = dict(around)
    for position, node in enumerate(reader.listing(path)):
        at = (*path, position)
        tag = node.get(TAG, "") if isinstance(node, dict) else ""
        if tag in ("!Parallel", "!Hierarchical", "!Pipelined"):
            yield from _of_nodes(reader, (*at, "nodes"), attributes, count)
            continue
        if tag == "!Nothing":
            continue
        if tag not in ("!Container", "!Component", "!ArithmeticComponent", "!StorageComponent"):
            raise ConfigError(f"unknown node {tag or 'without a tag'}", reader.located.place(at))
        inside = reader.with_names(attributes)
        for key in ("meshX", "meshY", "meshZ"):
            count[0] *= inside.whole((*at, "spatial", key)) or 1
        own = _plain(reader.mapping((*at, "attributes")))
        if tag == "!Container":
            attributes.update(own)
            reader.notes.drop(reader.name(at), [key for key in node if key == "constraints"])
            continue
        given = reader.mapping(at)
        kept = reader.mapping((*at, "constraints", "dataspace")).get("keep", [])
        keep = frozenset(map(str, kept if isinstance(kept, list) else []))
        reader.notes.drop(reader.name(at), [key for key in given if key in ("constraints", "enabled")])
        kind = f"{given.get('class', '')} {given.get('subclass', '')}".strip().lower()
        yield _Component(reader.name(at), kind, count[0], at, {**attributes, **own}, keep)


def _attribute(reader: Reader, each: _Component, *names: str) -> float | None:
    """The first of some attributes that is there: at the component or in what is around it."""
    for name in names:
        if name in each.attributes:
            own = next((key for key in _own(reader, each) if key.replace("-", "_") == name), None)
            if own is not None:
                return reader.with_names(each.attributes).number((*each.path, "attributes", own))
            return reader.with_names(each.attributes).names.get(name)
    return None


def _width(reader: Reader, each: _Component, *names: str) -> float | None:
    """The same for bits, or words of a line. Raises ConfigError for less than one and beyond `WIDEST`."""
    found = _attribute(reader, each, *names)
    if found is not None and not 1 <= found <= WIDEST:
        raise ConfigError(f"{names[0]} of {each.name} is {found:g}", reader.located.place(each.path))
    return found


def _own(reader: Reader, each: _Component) -> dict[str, Any]:
    return reader.mapping((*each.path, "attributes"))


def _clock(reader: Reader, each: _Component) -> float:
    """Cycles per second."""
    seconds = _attribute(reader, each, "global_cycle_seconds")
    if not seconds:
        note = "cycles of 1 ns: no global_cycle_seconds"
        if note not in reader.notes.assumed:
            reader.notes.assumed.append(note)
    return 1 / (seconds or _CYCLE)


def _memory(reader: Reader, each: _Component, fanout: int) -> Memory:
    notes = reader.notes
    notes.drop(each.name, [key for key in _own(reader, each) if key.replace("-", "_") not in _KNOWN])
    word = _width(reader, each, "datawidth", "word_bits")
    if word is None:
        notes.assumed.append(f"{each.name}: words of 8 bits")
    word = word or 8
    line = _width(reader, each, "width", "memory_width") or word * (_width(reader, each, "block_size") or 1)
    clusters = _width(reader, each, "cluster_size") or 1
    bits = _bits(reader, each, word, line / clusters)
    speed = _attribute(reader, each, "read_bandwidth", "shared_bandwidth", "rw_bandwidth")
    if speed is None and (both := _attribute(reader, each, "bandwidth")) is not None:
        speed = both / 2
    written = _attribute(reader, each, "write_bandwidth")
    if written is not None and written != speed:
        notes.drop(each.name, [f"write_bandwidth {written:g}, another than the one for reads"])
    if speed is None or math.isinf(speed):
        notes.assumed.append(f"{each.name}: bandwidth without limit")
    limited = speed is not None and not math.isinf(speed)
    paid = _energy(reader, each, ("read", "write", "update"))
    return Memory(
        each.name,
        bits,
        fanout,
        speed * word * _clock(reader, each) if limited and speed is not None else None,
        paid,
        line / clusters,
        int(word),
        max(1, int(line)),
        each.keep,
    )


def _bits(reader: Reader, each: _Component, word: float, line: float) -> float:
    """Capacity of one instance in bits. Raises ConfigError where only a DRAM may say nothing."""
    for name, unit in zip(_SIZES, (word, line, line, 8192), strict=True):
        if (found := _attribute(reader, each, name)) is not None:
            return found * unit
    if "dram" not in each.kind:
        raise ConfigError(
            f"{each.name} has no capacity", reader.located.place(each.path), f"One of {', '.join(_SIZES)} tells it."
        )
    return math.inf


def _compute(reader: Reader, each: _Component, fanout: int) -> Compute:
    width = int(_width(reader, each, "multiplier_width", "datawidth", "word_bits", "width") or 8)
    floating = "fp" in each.kind or "float" in each.kind
    inputs, accumulator = _types(width, floating)
    reader.notes.assumed.append(
        f"{each.name}: a multiply-add per cycle, of {inputs} in {accumulator} (class {each.kind or 'none'})"
    )
    paid = _energy(reader, each, ("compute", "mac_random", "mac", "multiply"))
    return Compute(each.name, fanout, _clock(reader, each), paid, inputs, accumulator)


def _types(width: int, floating: bool) -> tuple[str, str]:
    """Types that a unit multiplies and sums in, by the bits of its inputs."""
    if floating:
        return ("f32" if width > 16 else "f16", "f32")
    return ("i8" if width <= 8 else "i16" if width <= 16 else "i32", "i32")


def _energy(reader: Reader, each: _Component, actions: tuple[str, ...]) -> float | None:
    """Joules of an action from the energy table: the dearest of the first kind that is in it."""
    for position, table in enumerate(reader.listing(("ERT", "tables"))):
        name = str(table.get("name", "")) if isinstance(table, dict) else ""
        if re.sub(r"\[[^]]*\]", "", name).rpartition(".")[2] != each.name:
            continue
        path: KeyPath = ("ERT", "tables", position, "actions")
        for wanted in actions:
            costs = [
                reader.number((*path, place, "energy"), most=MOST_JOULES)
                for place, action in enumerate(reader.listing(path))
                if isinstance(action, dict) and action.get("name") == wanted
            ]
            if told := [cost for cost in costs if cost is not None]:
                return max(told) * 1e-12
    return None
