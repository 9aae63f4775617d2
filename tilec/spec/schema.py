"""JSON Schemas of device, recipe and type files, for editors; generated from the models."""

from typing import Any

from pydantic import TypeAdapter

from tilec.errors import UsageError, did_you_mean
from tilec.spec.bounds import BoundsRecipe
from tilec.spec.device import DeviceSpec
from tilec.spec.recipe import BenchRecipe, CompileRecipe
from tilec.spec.study import StudyRecipe
from tilec.spec.sweep import SweepRecipe
from tilec.spec.types import TypeSpec

_MODELS: dict[str, TypeAdapter[Any]] = {
    "device": TypeAdapter(DeviceSpec),
    "recipe": TypeAdapter(CompileRecipe | BenchRecipe | SweepRecipe | StudyRecipe | BoundsRecipe),
    "type": TypeAdapter(TypeSpec),
}


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema of a `device`, `recipe` or `type` file. Raises UsageError for another name."""
    if name not in _MODELS:
        near = did_you_mean(name, _MODELS)
        hint = f"Did you mean {near!r}?" if near else f"Known: {', '.join(_MODELS)}."
        raise UsageError(f"no schema is called {name!r}", hint=hint)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **_MODELS[name].json_schema()}
