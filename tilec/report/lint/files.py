"""Lint of a file: its kind, errors of reading and decoding, and the findings of its content."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

from tilec.artifact import WRITERS, parse_artifact
from tilec.errors import ArtifactError, ConfigError, UsageError, unreadable
from tilec.report.lint.artifacts import Recount, check_artifact
from tilec.report.lint.devices import check_device
from tilec.report.lint.finding import Finding, Place, place_of
from tilec.report.lint.recipes import check_recipe
from tilec.spec.bounds import BoundsRecipe
from tilec.spec.device import DeviceSpec
from tilec.spec.located import Located, Spec, parse_yaml, validate
from tilec.spec.recipe import BenchRecipe, CompileRecipe
from tilec.spec.study import StudyRecipe
from tilec.spec.sweep import SweepRecipe
from tilec.spec.types import TypeSpec, with_type_files

_RECIPES: dict[str, type[Spec]] = {"compile": CompileRecipe, "bench": BenchRecipe, "bounds": BoundsRecipe}


def lint_file(path: Path, recount: Recount | None = None) -> list[Finding]:
    """The findings of a device, recipe, type or artifact, errors first; `recount` counts the costs of plans.

    Raises UsageError when the file is missing or of another kind.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(
            "this is no text", str(path), "Devices, recipes, types, artifacts can be looked at."
        ) from error
    except OSError as error:
        raise unreadable(error, str(path)) from error
    return lint_text(text, str(path), path.parent, recount)


def lint_text(text: str, file: str, folder: Path | None, recount: Recount | None = None) -> list[Finding]:
    """The findings of the text of a file, which may refer to files in `folder` (None: it comes with tilec)."""
    if file.endswith((".yaml", ".yml")):
        findings = _guarded(lambda: _yaml(text, file, folder), file)
    elif file.endswith(".json"):
        findings = _guarded(lambda: _artifact(text, file, recount), file)
    else:
        raise UsageError("this is no .yaml or .json file", file, "Devices, recipes, types, artifacts can be looked at.")
    return sorted(findings, key=lambda each: (each.rule.severity != "error", each.place.line))


def _guarded(look: Callable[[], Iterator[Finding]], file: str) -> list[Finding]:
    """The findings until the file proves invalid, which is a finding too."""
    findings: list[Finding] = []
    try:
        findings.extend(look())
    except (ConfigError, ArtifactError) as error:
        unknown = isinstance(error, ConfigError) and error.message.startswith("unknown key")
        code = "unknown-key" if unknown else "invalid"
        findings.append(Finding(code, place_of(error.place, file), error.message, error.hint or ""))
    return findings


def _yaml(text: str, file: str, folder: Path | None) -> Iterator[Finding]:
    located = parse_yaml(text, file)
    kind = located.data.get("kind")
    if kind == "type":
        validate(TypeSpec, located)
    elif "levels" in located.data and kind not in (*_RECIPES, "sweep"):
        yield from check_device(validate(DeviceSpec, located), located, text)
    else:
        located = with_type_files(located, folder)
        yield from check_recipe(validate(_recipe_model(located), located), located, folder)


def _recipe_model(located: Located) -> type[Spec]:
    kind = located.data.get("kind", "compile")
    if kind == "sweep":
        return SweepRecipe if "models" in located.data else StudyRecipe
    return _RECIPES.get(kind, CompileRecipe) if isinstance(kind, str) else CompileRecipe


def _artifact(text: str, file: str, recount: Recount | None) -> Iterator[Finding]:
    try:
        kind = json.loads(text)["artifact"]["kind"]
    except (ValueError, KeyError, TypeError, RecursionError):
        kind = None
    artifact = parse_artifact(text, kind if isinstance(kind, str) and kind in WRITERS else "plan", file)
    try:
        yield from check_artifact(artifact, file, recount)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        again = f"Run `tilec {WRITERS[artifact.kind]}` again."
        yield Finding("invalid", Place(file), f"this is no {artifact.kind}: {error}", again)
