"""Checks of a recipe: unknown names, and verification that verifies little."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from tilec.errors import TilecError, did_you_mean
from tilec.report.lint.finding import Finding, Place, place_of
from tilec.spec.located import KeyPath, Located, Spec
from tilec.spec.recipe import CompileRecipe
from tilec.spec.resolve import HOST, device_source, parse_device

LOOSE = 0.05
"""Relative tolerance above which verification is too loose to be explained by rounding."""


def check_recipe(recipe: Spec, located: Located, folder: Path | None) -> Iterator[Finding]:
    """The suspicious values of a valid recipe; its file names are relative to `folder`, None for one of tilec's own."""
    for key in ("device", "devices"):
        value = getattr(recipe, key, None)
        for i, name in enumerate([value] if isinstance(value, str) else value or ()):
            yield from _device(name, _place(located, (key,) if isinstance(value, str) else (key, i)), folder)
    if isinstance(recipe, CompileRecipe):
        yield from _compile(recipe, located, folder)


def _compile(recipe: CompileRecipe, located: Located, folder: Path | None) -> Iterator[Finding]:
    yield from _files(recipe, located, folder)
    yield from _closed(recipe, located, folder)
    if not isinstance(recipe.fallback, str):
        known = _operators()
        for i, operator in enumerate(recipe.fallback):
            if operator not in known:
                message = f"ONNX has no operator {operator!r}{_near(operator, known)}"
                yield Finding("unknown-operator", _place(located, ("fallback", i)), message)
    tolerance = recipe.verify.tolerance
    if tolerance is not None and tolerance > LOOSE:
        message = f"verify.tolerance is {tolerance:g} of the largest value"
        yield Finding("loose-tolerance", _place(located, ("verify", "tolerance")), message)
    if len(recipe.verify.seeds) < 2 and recipe.verify.inputs is None:
        yield Finding("few-seeds", _place(located, ("verify", "seeds")), "verify.seeds has one seed")


def _files(recipe: CompileRecipe, located: Located, folder: Path | None) -> Iterator[Finding]:
    """Files that the recipe reads; a tuning record that is to be written need not exist."""
    named = {("verify", "inputs"): recipe.verify.inputs}
    if not recipe.schedule.profile:
        named["schedule", "record"] = recipe.schedule.record
    for path, name in named.items():
        if name is not None and not ((folder or Path()) / name).is_file():
            yield Finding("unknown-name", _place(located, path), f"no such file: {name}")


def _closed(recipe: CompileRecipe, located: Located, folder: Path | None) -> Iterator[Finding]:
    """Closed levels that the recipe's own device does not have."""
    if not recipe.schedule.closed or recipe.device == HOST:
        return
    try:
        levels = parse_device(device_source(recipe.device, relative_to=folder)).level_names
    except TilecError:
        return  # reported with the device
    for i, name in enumerate(recipe.schedule.closed):
        if name not in levels:
            message = f"{recipe.device} has no level {name!r}{_near(name, levels)}"
            yield Finding("unknown-name", _place(located, ("schedule", "closed", i)), message)


def _device(name: str, place: Place, folder: Path | None) -> Iterator[Finding]:
    if name == HOST:
        return
    try:
        parse_device(device_source(name, relative_to=folder))
    except TilecError as error:
        yield Finding("unknown-name", place, f"device {name!r}: {error.message}", error.hint or "")


def _operators() -> frozenset[str]:
    import onnx

    return frozenset(schema.name for schema in onnx.defs.get_all_schemas())


def _near(word: str, known: Iterable[str]) -> str:
    near = did_you_mean(word, known)
    return f", did you mean {near!r}" if near else ""


def _place(located: Located, path: KeyPath) -> Place:
    return place_of(located.place(path), located.whole)
