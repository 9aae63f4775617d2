"""From what a user asked for - a recipe in effect, flags - to the job that the stages share."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilec.pipeline.job import Job, Listener

if TYPE_CHECKING:
    from tilec.spec.effective import Effective
    from tilec.spec.recipe import CompileRecipe

Flags = Mapping[str, tuple[str, Any]]
"""Dotted recipe key -> the flag that sets it and the value."""


def plain_job(recipe: "CompileRecipe", flags: Flags, listener: Listener) -> Job:
    """The job of stages that ask nothing of the device."""
    shapes = {symbol: known.value for symbol, known in recipe.shapes.items() if known.value is not None}
    asked = frozenset(key.split(".")[1] for key in flags if key.startswith("shapes."))
    return Job(recipe, listener, shapes=shapes, asked=asked)


def device_job(effective: "Effective", flags: Flags, listener: Listener, cache: Path) -> Job:
    """The job of stages that need the device; object files are kept in folder `cache`."""
    from tilec.spec.resolve import HOST

    measured = effective.device_source.place == HOST
    return replace(
        plain_job(effective.recipe, flags, listener),
        device=effective.device,
        cache=cache / "objects",
        device_text=effective.device_source.text if measured else None,
    )
