"""Cache of curves in the user's cache folder, keyed by content: a shape is bounded once, independent of names."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from tilec.bounds.einsum.curve import Curve, Point
from tilec.bounds.einsum.einsum import Einsum
from tilec.bounds.einsum.mapping import Mapping
from tilec.bounds.einsum.mapspaces import MAPSPACES, Kind
from tilec.errors import TilecError

ENGINE = 1
"""Version in every key: increment it when the curve of the same Einsum and mapspace changes."""


def cached(einsum: Einsum, kind: Kind = "oro+", folder: Path | None = None) -> Curve:
    """The curve of an Einsum from the cache, else computed and cached.

    `folder` is `bounds` in tilec's cache folder by default. An unreadable or invalid file is rewritten; a file that
    cannot be written is skipped. Raises the errors of `oro` and `oro_plus`.
    """
    return _kept(einsum, key(einsum, kind), lambda: _worked_out(einsum, kind), folder)


def cached_parallel(
    einsum: Einsum,
    units: int,
    capacity: int | None = None,
    whole: frozenset[str] = frozenset(),
    folder: Path | None = None,
) -> Curve:
    """The curve of an Einsum in at least `units` tasks (`parallel`) from the cache, else computed and cached."""

    def compute() -> Curve:
        from tilec.bounds.einsum.oro_plus import parallel

        return parallel(einsum, units, capacity, whole)

    at = [einsum.dims.index(dim) for dim in sorted(whole)]
    return _kept(einsum, key(einsum, "oro+", [units, capacity, at]), compute, folder)


def _kept(einsum: Einsum, name: str, compute: Callable[[], Curve], folder: Path | None) -> Curve:
    """The curve in the file of a key, else computed and written there."""
    path = (folder or _default_folder()) / f"{name}.json"
    with suppress(OSError, ValueError, LookupError, TypeError):
        return _from_json(json.loads(path.read_text(encoding="utf-8")), einsum)
    from tilec.artifact import write_text

    curve = compute()
    with suppress(TilecError):
        write_text(path, json.dumps(_to_json(curve, einsum), separators=(",", ":")))
    return curve


def _worked_out(einsum: Einsum, kind: Kind) -> Curve:
    """Compute the curve; imports are deferred since a cached curve needs neither the search nor NumPy."""
    if kind == "oro":
        from tilec.bounds.einsum.oro import oro

        return oro(einsum)
    from tilec.bounds.einsum.oro_plus import oro_plus

    return oro_plus(einsum)


def key(einsum: Einsum, kind: Kind, tasks: Sequence[object] = ()) -> str:
    """Content key of a curve as a file name: extents, indices, element sizes, the mapspace and the engine's version;
    units, capacity and whole iterators of a curve in `tasks`.

    Iterators go by their positions and tensors have no names. Guards do not count: boxes include the elements they
    exclude.
    """
    at = {dim: position for position, dim in enumerate(einsum.dims)}
    operands = [
        [operand.bits, [sorted((at[dim], c) for dim, c in rank) for rank in operand.ranks if rank]]
        for operand in einsum.operands
    ]
    content = [ENGINE, MAPSPACES[kind], list(einsum.extents.values()), operands, *tasks]
    return sha256(json.dumps(content).encode()).hexdigest()[:32]


def _default_folder() -> Path:
    from tilec.artifact import cache_folder

    return cache_folder() / "bounds"


def _to_json(curve: Curve, einsum: Einsum) -> dict[str, Any]:
    at: dict[str | None, int] = {dim: position for position, dim in enumerate(einsum.dims)}
    streamed: dict[str | None, int] = {label: position for position, label in enumerate(einsum.labels)}
    points = [
        [
            point.buffer_bytes,
            point.accesses,
            point.traffic_bytes,
            [point.mapping.tiles[dim] for dim in einsum.dims],
            [at[dim] for dim in point.mapping.order],
            streamed.get(point.mapping.streamed, -1),
            at.get(point.mapping.sliding, -1),
            [(at[dim], count) for dim, count in point.mapping.tasks],
        ]
        for point in curve.points
    ]
    snake = any(point.mapping.snake for point in curve.points)
    return {"mapspace": curve.mapspace, "mappings": curve.mappings, "snake": snake, "points": points}


def _from_json(data: Any, einsum: Einsum) -> Curve:
    """The curve under the Einsum's own names. Raises ValueError, LookupError or TypeError for anything else."""
    dims, labels = einsum.dims, (*einsum.labels, None)
    snake = bool(data["snake"])
    points = []
    for needed, accesses, traffic, sizes, order, streamed, sliding, *grid in data["points"]:
        tiles = dict(zip(dims, sizes, strict=True))
        loops = tuple(dims[position] for position in order)
        window = None if sliding < 0 else dims[sliding]
        tasks = tuple((dims[position], int(count)) for each in grid for position, count in each)
        mapping = Mapping.of(einsum, tiles, loops, labels[streamed], window, snake=snake, tasks=tasks)
        points.append(Point(needed, accesses, traffic, mapping))
    if not points and data["mappings"]:
        raise ValueError("a curve of mappings has points")
    return Curve(str(data["mapspace"]), int(data["mappings"]), tuple(points))
