"""A sweep as data: models, devices, ways to fuse and sizes, of which every combination is planned (W49, W51)."""

from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field, Strict, field_validator

from tilec.errors import did_you_mean
from tilec.spec.located import Spec
from tilec.spec.recipe import LARGEST, ScheduleOptions

FUSIONS: tuple[str, ...] = get_args(ScheduleOptions.model_fields["fusion"].annotation)
"""The values of `schedule.fusion` in a recipe of kind compile."""


def _from_int(value: Any) -> Any:
    return [value] if isinstance(value, int) and not isinstance(value, bool) else value


def _from_name(value: Any) -> Any:
    return {"model": value} if isinstance(value, str) else value


Sizes = Annotated[
    tuple[Annotated[int, Field(ge=0, le=LARGEST)], ...],
    Field(min_length=1),
    Strict(False),
    BeforeValidator(_from_int, json_schema_input_type=int | list[int]),
]
"""One size or several."""


class SweptModel(Spec):
    """A model of a sweep, with sizes of its own."""

    model: str = Field(min_length=1, description="name of the zoo, or an ONNX file")
    shapes: dict[str, Sizes] = Field(default_factory=dict, description="sizes of this model only")


_Named = Annotated[SweptModel, BeforeValidator(_from_name, json_schema_input_type=str | SweptModel)]


class SweepRecipe(Spec):
    """Models to plan and compare without running them: `tilec report --recipe FILE`."""

    kind: Literal["sweep"] = Field(description="of the recipe")
    models: tuple[_Named, ...] = Field(min_length=1, description="names of the zoo or ONNX files")
    devices: tuple[str, ...] = Field(default=("host",), min_length=1, description="names or files of devices")
    fusion: tuple[str, ...] = Field(default=FUSIONS, min_length=1, description=f"some of {', '.join(FUSIONS)}")
    shapes: dict[str, Sizes] = Field(
        default_factory=dict, description="symbolic size -> sizes; of models of the zoo batch and seq"
    )
    objective: Literal["time", "traffic", "footprint"] = Field(default="time", description="what plans minimise")
    bounds: bool = Field(default=False, description="whether traffic is compared with the least known")
    tiles: bool = Field(default=False, description="whether the tiles and steps of the plan's kernels are told")
    fallback: Literal["allow", "refuse"] = Field(default="allow", description="whether operators may be left out")

    @field_validator("fusion")
    @classmethod
    def _known(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        for value in values:
            if value not in FUSIONS:
                near = did_you_mean(value, FUSIONS)
                instead = f"did you mean {near!r}?" if near else f"known are {', '.join(FUSIONS)}"
                raise ValueError(f"no way to fuse is called {value!r}; {instead}")
        return values
