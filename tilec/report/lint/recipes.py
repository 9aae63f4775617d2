"""Checks of a recipe: unknown names, and verification that verifies little."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from tilec.errors import TilecError, did_you_mean
from tilec.report.lint.finding import Finding, Place, place_of
from tilec.spec.contradictions import recipe_contradictions
from tilec.spec.device import DeviceSpec
from tilec.spec.located import KeyPath, Located, Spec
from tilec.spec.recipe import CompileRecipe
from tilec.spec.resolve import device_source, parse_device
from tilec.spec.source import HOST

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
    for each in recipe_contradictions(recipe, _device_of(recipe, folder), folder):
        yield Finding(each.code, _place(located, each.path), each.message)
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


def _device_of(recipe: CompileRecipe, folder: Path | None) -> DeviceSpec | None:
    """The recipe's own device; None for one that has to be measured, and for one that is reported itself."""
    if recipe.device == HOST:
        return None
    try:
        return parse_device(device_source(recipe.device, relative_to=folder))
    except TilecError:
        return None


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
