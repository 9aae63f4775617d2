"""Checks of a device: numbers without a source, and inconsistent levels."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from tilec.codegen.backend import backend_kinds
from tilec.errors import did_you_mean
from tilec.report.lint.finding import Finding, Place, place_of
from tilec.spec.contradictions import device_contradictions
from tilec.spec.device import DeviceSpec, Level
from tilec.spec.located import KeyPath, Located
from tilec.spec.units import BYTES

_QUANTITY = re.compile(r"[\d.]+\s*[A-Za-zµ]+(/s)?")
"""A number with its unit."""

_WARPGROUP = "warpgroup"
"""Four warps whose instruction no level has as its scope."""

_WITHOUT_BACKEND = ("ipu", "none")
"""Kinds of devices that come with tilec and get plans and tile programs alone."""

_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")


def check_device(device: DeviceSpec, located: Located, text: str) -> Iterator[Finding]:
    """The suspicious values of a valid device, in the order of its levels."""
    yield from _unsourced(located, text)
    for each in device_contradictions(device):
        yield Finding(each.code, _place(located, each.path), each.message)
    for i, level in enumerate(device.levels):
        yield from _level(level, located, ("levels", i))
    yield from _smaller(device, located)
    yield from _scopes(device, located)
    yield from _backend(device, located)
    below: Level | None = None
    for i, level in enumerate(device.levels):
        if level.bandwidth is None:
            continue
        if below is not None and below.bandwidth is not None and level.bandwidth.total < below.bandwidth.total:
            message = f"level {level.name} delivers {_rate(level.bandwidth.total)} in total, {below.name} below it "
            message += _rate(below.bandwidth.total)
            yield Finding("slower-towards-core", _place(located, ("levels", i, "bandwidth")), message)
        below = level
    for pool in device.pools:
        if not any(level.pool == pool for level in device.levels):
            yield Finding("unused-pool", _place(located, ("pools", pool)), f"no level takes its bytes from pool {pool}")


def _smaller(device: DeviceSpec, located: Located) -> Iterator[Finding]:
    """Levels with less than one instance of the next one; the highest level, whose instances share, may have more."""
    for i, (level, above) in enumerate(pairwise(device.levels[:-1])):
        if level.capacity < above.capacity:
            message = f"level {level.name} holds {BYTES.format(level.capacity)}, less than one {above.name} above it, "
            yield Finding(
                "smaller-below", _place(located, ("levels", i, "capacity")), message + BYTES.format(above.capacity)
            )


def _scopes(device: DeviceSpec, located: Located) -> Iterator[Finding]:
    """Compute units of scopes that the device does not have."""
    known = [*dict.fromkeys(level.scope or level.name for level in device.levels), _WARPGROUP]
    for i, unit in enumerate(device.compute):
        if unit.scope and unit.scope not in known:
            message = f"unit {unit.name} belongs to the scope {unit.scope!r}{_nearest(unit.scope, known)}"
            yield Finding("unknown-scope", _place(located, ("compute", i, "scope")), message)


def _backend(device: DeviceSpec, located: Located) -> Iterator[Finding]:
    """A kind of code generator that is neither here nor that of a device that comes with tilec."""
    known = [*backend_kinds(), *_WITHOUT_BACKEND]
    kind = device.target.backend
    if kind not in known:
        place = _place(located, ("target", "backend"))
        yield Finding("unknown-backend", place, f"no back end is called {kind!r}{_nearest(kind, known)}")


def _nearest(name: str, known: list[str]) -> str:
    near = did_you_mean(name, known)
    return f", did you mean {near!r}" if near else ""


def _level(level: Level, located: Located, path: KeyPath) -> Iterator[Finding]:
    """Checks of one level on its own."""

    def found(code: str, message: str, *keys: str) -> Finding:
        return Finding(code, _place(located, (*path, *keys)), f"level {level.name} {message}")

    if level.alignment & (level.alignment - 1):
        yield found("odd-alignment", f"is aligned to {level.alignment} bytes", "alignment")
    given = level.bandwidth
    if given is None:
        return
    for name, who, alone in (("instance", "one instance", given.instance), ("reader", "a reader", given.reader)):
        if alone is not None and alone > given.total:
            message = f"gives {who} {_rate(alone)} of {_rate(given.total)} in total"
            yield found("bandwidth-exceeds-total", message, "bandwidth", name)


def _unsourced(located: Located, text: str) -> Iterator[Finding]:
    """Numbers without a comment on their line or right above it."""
    lines = text.splitlines()
    reported: set[int] = set()
    for path in located.values:
        value = _at(located.data, path)
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number and not (isinstance(value, str) and _QUANTITY.fullmatch(value)):
            continue
        place = _place(located, path)
        if place.line in reported or not 0 < place.line <= len(lines):
            continue
        above = lines[place.line - 2].lstrip() if place.line > 1 else ""
        if _commented(lines[place.line - 1]) or above.startswith("#"):
            continue
        reported.add(place.line)
        yield Finding("unsourced", place, f"{_named(located, path)} {value} has no source")


def _commented(line: str) -> bool:
    return re.search(r"(^|\s)#", _QUOTED.sub("", line)) is not None


def _named(located: Located, path: KeyPath) -> str:
    """`level l2: capacity`, `launch_overhead`."""
    words = [str(step) for step in path if isinstance(step, str) and step not in ("levels", "compute")]
    owner = _at(located.data, path[:2]) if len(path) > 2 and path[0] in ("levels", "compute") else None
    name = owner.get("name") if isinstance(owner, dict) else None
    kind = {"levels": "level", "compute": "unit"}.get(str(path[0]), "")
    return (f"{kind} {name}: " if name else "") + ".".join(words)


def _at(data: object, path: KeyPath) -> object:
    for step in path:
        data = data[step]  # type: ignore[index]
    return data


def _place(located: Located, path: KeyPath) -> Place:
    return place_of(located.place(path), located.whole)


def _rate(rate: int) -> str:
    """Bytes per second with a unit."""
    for unit, size in (("TB/s", 10**12), ("GB/s", 10**9), ("MB/s", 10**6)):
        if rate >= size:
            return f"{rate / size:.3g} {unit}"
    return f"{rate} B/s"
