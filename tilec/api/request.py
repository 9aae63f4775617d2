"""Requests to compile a model, and the key of everything that the compiled code depends on."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tilec.api.cache import LIMIT_VARIABLE, Cache
from tilec.artifact import digest_bytes, digest_file, digest_object, tools

SizeRange = tuple[int, int | None, int]
"""The least and the largest size (None: no limit), and the number that divides all."""

LINKS = "links.json"
"""In a compiled model's folder: the files that lie elsewhere, by name; "" is the model, others lie beside it."""

SPECIALIZE_VARIABLE = "TILEC_SPECIALIZE"
"""Whether sessions have models of their own for sizes that they see often."""

WHILE_COMPILING_VARIABLE = "TILEC_WHILE_COMPILING"
"""What calls do while their model is compiled."""

_RECORDING_VARIABLES = ("TILEC_RECORD", "TILEC_RECORD_SLOWER")

_WITHOUT_EFFECT = frozenset(
    {
        "TILEC_PROGRESS",
        "TILEC_THREADS",
        LIMIT_VARIABLE,
        SPECIALIZE_VARIABLE,
        WHILE_COMPILING_VARIABLE,
        *_RECORDING_VARIABLES,
    }
)
"""Variables that say nothing about the code."""

_RECORD_VARIABLE = "TILEC_SCHEDULE_RECORD"


@dataclass(frozen=True)
class Request:
    """A request to compile a model for a device into a cache.

    `model` is the file, `sha256` its digest, `weights` those of the external files beside it; `sizes` binds symbols,
    `ranges` limits them, others are any size; `cache` is the root of the cache, `key` (see `keyed`) the place in it;
    `background` gives way to all else; what is `detached` is compiled by the compiler of the cache, which outlives this
    process, and what may come `later` after all else that waits there. With `rooms`, states that grow have room for
    more in place, which is told by an input more than the model has.
    """

    model: str
    sha256: str
    device: str
    cache: str
    recipe: str | None = None
    weights: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    ranges: Mapping[str, SizeRange] = field(default_factory=dict)
    background: bool = False
    detached: bool = False
    later: bool = False
    rooms: bool = False
    key: str = ""


def keyed(request: Request, measure: bool = True) -> Request:
    """The request with the key that names everything that the compiled code depends on.

    Raises UsageError for an unknown device or recipe; UnmeasuredError where it is for this machine, which was not
    measured, and is not to be now.
    """
    from tilec.spec.resolve import device_source, recipe_source

    record = _record(request.recipe)
    without = _WITHOUT_EFFECT | ({_RECORD_VARIABLE} if record else set())  # a record counts by what it holds
    variables = {n: value for n, value in os.environ.items() if n.startswith("TILEC_") and n not in without}
    recipe = recipe_source(request.recipe).text if request.recipe is not None else ""
    key = digest_object(
        {
            "device": digest_bytes(device_source(request.device, measure=measure).text.encode()),
            "model": request.sha256,
            "ranges": {symbol: list(ends) for symbol, ends in request.ranges.items()},
            "recipe": digest_bytes(recipe.encode()),
            "record": record,
            "rooms": request.rooms,
            "sizes": dict(request.sizes),
            "tools": tools(),
            "variables": variables,
            "weights": dict(request.weights),
        }
    )
    return replace(request, key=key)


def keyed_if_known(request: Request) -> Request:
    """The request with its key; without one where that would take a measurement of this machine.

    Raises UsageError for an unknown device or recipe.
    """
    from tilec.spec.resolve import UnmeasuredError

    try:
        return keyed(request, measure=False)
    except UnmeasuredError:
        return request


def available(request: Request) -> bool:
    """Whether the model of a request with a key is compiled already; not, where it has none."""
    return bool(request.key) and Cache(Path(request.cache)).session(request.key).is_dir()


def _record(recipe: str | None) -> str:
    """The sha256 of the tuning record that a recipe or a variable names; empty where there is none."""
    if recipe is None and _RECORD_VARIABLE not in os.environ:
        return ""
    from tilec.spec.effective import recipe_without_device

    named = recipe_without_device(recipe, {}, os.environ).schedule.record
    return digest_file(Path(named)) if named is not None and Path(named).is_file() else ""
