"""Contradictions in valid device files and recipes: what `lint` reports as an error and every other command refuses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from tilec.errors import ConfigError, did_you_mean
from tilec.spec.located import KeyPath, Located
from tilec.spec.units import BYTES

if TYPE_CHECKING:
    from tilec.spec.device import DeviceSpec
    from tilec.spec.recipe import CompileRecipe

FIXES = {
    "capacity-below-transaction": "Correct the capacity or the transaction: nothing can be loaded into the level.",
    "pool-too-small": "Give the pool the capacity that its levels share.",
    "unknown-name": "Correct the name; the message has the nearest one.",
}
"""Code of a contradiction -> how to mend it."""


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A value at `path` that is wrong beside others: `code` is a rule of `lint`, `message` a sentence without its full
    stop."""

    code: str
    path: KeyPath
    message: str


def refuse(contradictions: Iterable[Contradiction], located: Located) -> None:
    """Raise ConfigError for the first contradiction, at its place."""
    for each in contradictions:
        raise ConfigError(each.message, located.place(each.path), FIXES[each.code])


def device_contradictions(device: DeviceSpec) -> Iterator[Contradiction]:
    """Those of a device, in the order of its levels."""
    for i, level in enumerate(device.levels):
        path: KeyPath = ("levels", i, "capacity")
        if level.capacity < level.transaction.bytes:
            message = f"level {level.name} holds {level.capacity} bytes, one transaction moves "
            yield Contradiction("capacity-below-transaction", path, f"{message}{level.transaction.bytes}")
        if level.pool is not None and (share := _share(device, i)) > device.pools[level.pool]:
            has = BYTES.format(device.pools[level.pool])
            message = f"level {level.name} takes {BYTES.format(share)} of its pool {level.pool}, which has {has}"
            yield Contradiction("pool-too-small", path, message)


def recipe_contradictions(
    recipe: CompileRecipe, device: DeviceSpec | None, folder: Path | None
) -> Iterator[Contradiction]:
    """Names of files and levels that are not there. Files are named from `folder` (None: the current one); one of a
    tuning record that is to be written need not exist. Levels are those of `device`, where it is known."""
    named = {("verify", "inputs"): recipe.verify.inputs}
    if not recipe.schedule.profile:
        named["schedule", "record"] = recipe.schedule.record
    for path, name in named.items():
        if name is not None and not ((folder or Path()) / name).is_file():
            yield Contradiction("unknown-name", path, f"no such file: {name}")
    for i, name in enumerate(recipe.schedule.closed if device is not None else ()):
        if device is not None and name not in device.level_names:
            near = did_you_mean(name, device.level_names)
            nearest = f", did you mean {near!r}" if near else ""
            message = f"{recipe.device} has no level {name!r}{nearest}"
            yield Contradiction("unknown-name", ("schedule", "closed", i), message)


def _share(device: DeviceSpec, number: int) -> int:
    """Bytes that one instance of a level takes of its pool: there is one pool per instance of the pool's highest
    level."""
    level = device.levels[number]
    sharing = [i for i, each in enumerate(device.levels) if each.pool == level.pool]
    pools = prod(each.units for each in device.levels[number + 1 : sharing[-1] + 1])
    return -(-level.capacity // pools)
