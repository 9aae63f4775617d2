"""A design study as data: workloads whose least data movement is set against machines (O28, O32)."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from tilec.spec.bounds import Area
from tilec.spec.located import Spec
from tilec.spec.quantities import Bytes, BytesPerSecond, FlopsPerSecond
from tilec.spec.recipe import LARGEST


def _from_name(value: Any) -> Any:
    return {"workload": value} if isinstance(value, str) else value


class Studied(Spec):
    """A workload of a study, with sizes where it is a model."""

    workload: str = Field(
        min_length=1, description="recipe of kind bounds, model of the zoo, ONNX file, graph, Einsum of f32"
    )
    shapes: dict[str, Annotated[int, Field(gt=0, le=LARGEST)]] = Field(
        default_factory=dict, description="symbolic size -> size"
    )


_Named = Annotated[Studied, BeforeValidator(_from_name, json_schema_input_type=str | Studied)]


class StudyRecipe(Spec):
    """The best possible times of a workload on machines: `tilec report --recipe FILE`.

    Machines are every level of `devices`; or buffers of these `capacities` in front of memories of these `bandwidths`,
    of which a device gives what is not listed; or dies of an `area` that a buffer and multipliers share.
    """

    kind: Literal["sweep"] = Field(description="of the recipe")
    convention: str = Field(min_length=1, description="what is counted and how, told with the numbers")
    workloads: tuple[_Named, ...] = Field(min_length=1, description="what is computed on every machine")
    mapspace: Literal["oro", "oro+"] | None = Field(
        default=None, description="tiles that divide their extents, or any (default: what a recipe says, oro+)"
    )
    devices: tuple[str, ...] = Field(default=(), description="names or files of devices")
    capacities: tuple[Bytes, ...] = Field(default=(), description="sizes of the buffer")
    bandwidths: tuple[BytesPerSecond, ...] = Field(default=(), description="of the memory below the buffer")
    rate: FlopsPerSecond | None = Field(default=None, description="of all multipliers, a multiply-add is two")
    area: Area | None = Field(default=None, description="a die; `bandwidths` replace its own")

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> "StudyRecipe":
        if self.area is not None and (self.devices or self.capacities or self.rate):
            raise ValueError("an area has no devices, capacities or rate: it gives them")
        if self.area is not None and self.area.published is not None:
            raise ValueError("a study counts multiply-adds and bytes: leave out `published`")
        if self.area is None and not self.devices and not self.capacities:
            raise ValueError("a study has devices, capacities or an area")
        if self.bandwidths and not self.capacities and self.area is None:
            raise ValueError("bandwidths need capacities beside them, or an area")
        if self.devices and self.rate and not self.capacities:
            raise ValueError("devices have rates of their own")
        return self
