"""From a file of Timeloop or AccelForge to the text of a device file."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from pathlib import PurePath

from tilec.errors import ConfigError
from tilec.spec.device import DeviceSpec
from tilec.spec.foreign import accelforge, timeloop
from tilec.spec.foreign.architecture import Architecture, Compute, Memory, Notes
from tilec.spec.located import parse_yaml, validate
from tilec.spec.units import BANDWIDTH, BYTES, ENERGY, LARGEST, RATE, Unit

UNBOUNDED = 1 << 52
"""Bytes of a memory without a size: 4096 TiB."""

_PLAIN = re.compile(r"[A-Za-z_][\w.+-]*")
_WORDS = {"true", "false", "null", "yes", "no", "on", "off"}


@dataclass(frozen=True)
class Translated:
    """The text of a device file, which tool wrote its origin, what was dropped and what was assumed."""

    text: str
    tool: str
    dropped: tuple[str, ...]
    assumed: tuple[str, ...]


def translate(text: str, place: str, name: str) -> Translated:
    """A device called `name` from an architecture; `place` names the file in errors.

    Raises ConfigError with line and column for what cannot be read, and where no device can be made of it.
    """
    _refuse_templates(text, place)
    located = parse_yaml(text, place, tags=True)
    notes = Notes()
    if "architecture" in located.data:
        tool, found = "Timeloop", timeloop.read(located, notes)
    elif "arch" in located.data:
        tool, found = "AccelForge", accelforge.read(located, notes)
    else:
        keys = ", ".join(located.data) or "nothing"
        raise ConfigError(
            "neither 'architecture' nor 'arch'", place, f"Timeloop and AccelForge have them; here: {keys}."
        )
    if len(found.memories) < 2:
        held = ", ".join(memory.name for memory in found.memories) or "none"
        raise ConfigError(f"a device has two memories at least, here: {held}", place)
    if not found.compute:
        raise ConfigError("nothing computes", place)
    body = "\n".join(_lines(found, name, f"from {tool}'s {PurePath(place).name}", notes))
    comments: list[str] = []
    for head, sentences in (("Assumed", notes.assumed), ("Dropped", notes.dropped)):
        comments += [f"# {head}", *(f"#   {_one_line(sentence)}" for sentence in sentences)] if sentences else []
    made = "\n".join([*comments, body, ""])
    validate(DeviceSpec, parse_yaml(made, f"{place}, translated"))
    return Translated(made, tool, tuple(notes.dropped), tuple(notes.assumed))


def _refuse_templates(text: str, place: str) -> None:
    for number, line in enumerate(text.splitlines(), 1):
        column = min((at for at in (line.find("{%"), line.find("{{")) if at >= 0), default=None)
        if column is not None and not line.lstrip().startswith("#"):
            raise ConfigError(
                "a template that is not filled in", f"{place}:{number}:{column + 1}", "Render it with Jinja first."
            )


def _one_line(sentence: str) -> str:
    return " ".join(sentence.split())


def _quoted(name: str) -> str:
    """A name as YAML."""
    if _PLAIN.fullmatch(name) and name.lower() not in _WORDS:
        return name
    return '"' + "".join(each if each.isprintable() and each not in '"\\' else "_" for each in name) + '"'


def _lines(found: Architecture, name: str, origin: str, notes: Notes) -> Iterator[str]:
    names = [memory.name for memory in found.memories]
    core = next((memory.name for memory in found.memories if memory.fanout > 1), names[-1])
    notes.assumed.append(f"kernels start on {names[0]}, a core has {core}")
    yield f"name: {_quoted(name)}"
    yield "kind: accelerator"
    yield f"description: {_quoted(origin)}"
    yield "levels:"
    instances = 1
    for memory in found.memories:
        instances *= memory.fanout
        yield from _level(memory, instances, notes)
    yield f"launch_level: {_quoted(names[0])}"
    yield f"core_level: {_quoted(core)}"
    yield "compute:"
    for unit in found.compute:
        yield from _unit(unit, prod(memory.fanout for memory in found.memories))
    yield "target:"
    yield "  backend: none"


def _level(memory: Memory, instances: int, notes: Notes) -> Iterator[str]:
    size = UNBOUNDED if math.isinf(memory.bits) else int(memory.bits // 8)
    if math.isinf(memory.bits):
        notes.assumed.append(f"{memory.name}: 4096 TiB, as good as unbounded")
    elif memory.bits % 8:
        notes.assumed.append(f"{memory.name}: {size} whole bytes of {memory.bits:g} bits")
    if not size:
        size = 1
        notes.assumed.append(f"{memory.name}: one byte at least")
    yield f"  - name: {_quoted(memory.name)}"
    yield f"    capacity: {_text(BYTES, size)}"
    if memory.fanout > 1:
        yield f"    units: {memory.fanout}"
    yield "    managed: explicit"
    if memory.bandwidth is not None:
        one = memory.bandwidth / 8
        alone = f", instance: {_text(BANDWIDTH, one, 1)}" if instances > 1 else ""
        yield f"    bandwidth: {{total: {_text(BANDWIDTH, one * instances, 1)}{alone}}}"
    element = max(1, memory.word_bits // 8)
    yield f"    transaction: {{element: {element}B, shape: [{max(1, memory.line_bits // 8 // element)}]}}"
    if memory.energy is not None:
        whole = memory.energy_bits % 8 == 0
        width = int(memory.energy_bits // 8) if whole else 1
        spent = memory.energy if whole else memory.energy * 8 / memory.energy_bits
        yield f"    access: {{energy: {_text(ENERGY, spent * 1e15)}, bytes: {width}B}}"


def _unit(unit: Compute, instances: int) -> Iterator[str]:
    yield f"  - name: {_quoted(unit.name)}"
    yield f"    inputs: [{unit.inputs}, {unit.inputs}]"
    yield f"    accumulator: {unit.accumulator}"
    yield f"    rate: {_text(RATE, 2 * unit.rate * unit.fanout * instances, 1)}"
    if unit.energy is not None:
        yield f"    energy: {_text(ENERGY, unit.energy * 1e15)}"


def _text(unit: Unit, value: float, least: int = 0) -> str:
    """A quantity, the largest there is for those beyond, `least` for those below."""
    return unit.format(max(least, round(min(value, LARGEST))))
