"""AccelForge's architectures: nodes, each inside those before it.

Sizes are bits, energies joules of an action, throughputs actions per second of one instance, an action moves
`bits_per_action` bits (1 unless told).  What a component model would work out is not known here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

from tilec.errors import ConfigError
from tilec.spec.foreign.architecture import (
    LARGEST_FANOUT,
    MOST_JOULES,
    WIDEST,
    Architecture,
    Compute,
    Memory,
    Notes,
    Reader,
    side_by_side,
)
from tilec.spec.foreign.arithmetic import NoNumberError, number
from tilec.spec.located import TAG, KeyPath, Located

_READ = {TAG, "name", "size", "spatial", "actions", "energy_scale", "throughput_scale", "nodes"}
"""Keys of nodes that have a meaning here."""

_SETS = {"All", "Nothing", "Intermediates", "Inputs", "Outputs"}
"""Words that stand for sets of tensors, not for one."""


def read(located: Located, notes: Notes) -> Architecture:
    """The architecture under `arch`. Raises ConfigError with the place of what makes no sense."""
    reader = Reader(located, notes)
    top: KeyPath = ("arch",)
    reader = reader.with_names(reader.mapping(("variables",))).with_names(reader.mapping((*top, "variables")))
    notes.drop("file", [key for key in located.data if key not in ("arch", "variables")])
    notes.drop("arch", [key for key in reader.mapping(top) if key not in ("nodes", "variables")])
    memories: list[Memory] = []
    compute: list[Compute] = []
    fanout = 1
    for at, tag in _nodes(reader, (*top, "nodes")):
        fanout *= _fanout(reader, at)
        if fanout > LARGEST_FANOUT:
            raise ConfigError(f"a fan-out of more than {LARGEST_FANOUT}", located.place(at))
        if tag == "!Memory":
            memory = _memory(reader, at, fanout)
            if memory is not None:
                memories.append(memory)
                fanout = 1
        elif tag == "!Compute":
            compute.append(_compute(reader, at, fanout))
    return Architecture(side_by_side(memories, notes), tuple(compute))


def _nodes(reader: Reader, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    """Paths and tags of nodes from the lowest; those inside an array follow it."""
    for position, node in enumerate(reader.listing(path)):
        at = (*path, position)
        tag = str(node.get(TAG, "")) if isinstance(node, dict) else ""
        if tag in ("!Hierarchical", "!Array"):
            yield at, tag
            yield from _nodes(reader, (*at, "nodes"))
        elif tag in ("!Memory", "!Compute", "!Container"):
            reader.notes.drop(reader.name(at), [key for key in node if key not in _READ])
            yield at, tag
        elif tag in ("!Toll", "!Network", "!Fork"):
            named = node.get("name")
            reader.notes.drop(str(named or f"node {position}"), [f"the whole {tag.removeprefix('!').lower()}"])
        else:
            raise ConfigError(f"unknown node {tag or 'without a tag'}", reader.located.place(at))


def _fanout(reader: Reader, at: KeyPath) -> int:
    found = 1
    for position in range(len(reader.listing((*at, "spatial")))):
        found *= reader.whole((*at, "spatial", position, "fanout")) or 1
    return found


def _memory(reader: Reader, at: KeyPath, fanout: int) -> Memory | None:
    """A memory; None where its size is only known with a workload."""
    name, size = reader.name(at), reader.at((*at, "size"))
    if size is None:
        raise ConfigError(f"{name} has no size", reader.located.place(at), "Write its bits, or inf.")
    try:
        bits = number(size, reader.names)
    except NoNumberError as error:
        if re.search(r"\.|\bif\b", str(size)) is None:
            raise ConfigError(str(error), reader.located.place((*at, "size")), "Write the bits.") from error
        reader.notes.dropped.append(f"{name}: the whole memory, its size depends on the workload ({size})")
        return None
    if bits < 0:
        raise ConfigError(f"{size!r} is less than 0", reader.located.place((*at, "size")))
    told = _actions(reader, at)
    read, write = told.get("read"), told.get("write")
    joules = [joules for _, joules, _ in told.values() if joules is not None]
    if read and write and read[1] != write[1] and len(joules) > 1:
        reader.notes.assumed.append(f"{name}: an access costs the mean of a read and a write")
    speed = read[0] * read[2] if read and read[0] is not None else None
    if read and write and write[0] is not None and write[0] != read[0]:
        reader.notes.drop(name, [f"throughput of writes {write[0]:g}, another than that of reads"])
    if speed is None:
        reader.notes.assumed.append(f"{name}: bandwidth without limit")
    return Memory(
        name,
        bits,
        fanout,
        speed,
        sum(joules) / len(joules) if joules else None,
        read[2] if read else 1,
        line_bits=max(8, read[2]) if read else 8,
        keep=_kept(reader, at),
    )


def _kept(reader: Reader, at: KeyPath) -> frozenset[str]:
    """The tensors that a memory holds alone; none where a set stands for them."""
    keep = str(reader.mapping((*at, "tensors")).get("keep", ""))
    names = [name.strip() for name in keep.split("|")]
    plain = all(re.fullmatch(r"\w+", name) and name not in _SETS for name in names)
    return frozenset(names) if plain and "may_keep" not in reader.mapping((*at, "tensors")) else frozenset()


def _actions(reader: Reader, at: KeyPath) -> dict[str, tuple[float | None, float | None, int]]:
    """Name of an action -> actions per second, joules and bits of one."""
    energy_scale, speed_scale = (_scale(reader, at, name) for name in ("energy_scale", "throughput_scale"))
    found: dict[str, tuple[float | None, float | None, int]] = {}
    for position in range(len(reader.listing((*at, "actions")))):
        action = (*at, "actions", position)
        speed = reader.number((*action, "throughput"))
        energy = reader.number((*action, "energy"), most=MOST_JOULES)
        reader.notes.drop(f"{reader.name(at)}.{reader.name(action)}", _unread(reader.mapping(action)))
        found[reader.name(action)] = (
            None
            if speed is None or math.isinf(speed)
            else speed * speed_scale * _scale(reader, action, "throughput_scale"),
            None if energy is None else energy * energy_scale * _scale(reader, action, "energy_scale"),
            reader.whole((*action, "bits_per_action"), WIDEST) or 1,
        )
    return found


def _scale(reader: Reader, at: KeyPath, name: str) -> float:
    found = reader.number((*at, name), most=MOST_JOULES)
    return 1 if found is None else found


def _unread(action: dict[str, Any]) -> list[str]:
    read = {"name", "energy", "throughput", "energy_scale", "throughput_scale", "bits_per_action"}
    return [key for key in action if key not in read]


def _compute(reader: Reader, at: KeyPath, fanout: int) -> Compute:
    name = reader.name(at)
    speed, energy, _ = _actions(reader, at).get("compute", (None, None, 1))
    if speed is None:
        reader.notes.assumed.append(f"{name}: 1e9 multiply-adds per second, its throughput is not told")
        speed = 1e9
    reader.notes.assumed.append(f"{name}: products and sums of f32")
    return Compute(name, fanout, speed, energy, "f32", "f32")
