"""From what a user asked for - a recipe in effect, flags - to the job that the stages share."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilec.pipeline.job import COPIED, Job, Listener

if TYPE_CHECKING:
    from tilec.ir.sizes import Scenario, SymbolRange
    from tilec.spec.effective import Effective
    from tilec.spec.recipe import CompileRecipe

Flags = Mapping[str, tuple[str, Any]]
"""Dotted recipe key -> the flag that sets it and the value."""


def plain_job(recipe: "CompileRecipe", flags: Flags, listener: Listener) -> Job:
    """The job of stages that ask nothing of the device."""
    shapes = {symbol: known.value for symbol, known in recipe.shapes.items() if known.value is not None}
    asked = frozenset(key.split(".")[1] for key in flags if key.startswith("shapes."))
    return Job(recipe, listener, shapes=shapes, ranges=declared_ranges(recipe), asked=asked)


def declared_ranges(recipe: "CompileRecipe") -> "dict[str, SymbolRange]":
    """What a recipe says of the sizes that it does not bind."""
    from tilec.ir.sizes import SymbolRange

    ranges = {}
    for symbol, known in recipe.shapes.items():
        if known.is_known:
            low, high = known.range if known.range is not None else (0, None)
            ranges[symbol] = SymbolRange(low, high, known.divisor, known.likely, f"recipe: shapes.{symbol}")
    return ranges


def declared_scenarios(recipe: "CompileRecipe") -> "dict[str, Scenario] | None":
    """The scenarios that a recipe names, None where it says nothing of any."""
    from tilec.ir.expr import Const
    from tilec.ir.sizes import Scenario
    from tilec.ir.text import parse_expr

    if recipe.scenarios is None:
        return None
    return {
        name: Scenario(
            {symbol: Const(size) if isinstance(size, int) else parse_expr(size) for symbol, size in sizes.items()},
            origin=f"recipe: scenarios.{name}",
        )
        for name, sizes in recipe.scenarios.items()
    }


def device_job(effective: "Effective", flags: Flags, listener: Listener, cache: Path) -> Job:
    """The job of stages that need the device; object files are kept in folder `cache`."""
    from tilec.spec.resolve import packaged
    from tilec.spec.source import HOST

    text: str | None = effective.device_source.text
    if effective.recipe.device in packaged("devices"):
        text = None
    elif effective.recipe.device != HOST:
        text = COPIED + effective.device_source.text.removeprefix(COPIED)
    elif effective.device_source.place != HOST:
        text = None  # the host as it stands beside the plan
    return replace(
        plain_job(effective.recipe, flags, listener),
        device=effective.device,
        cache=cache / "objects",
        device_text=text,
    )
