"""A recipe as data: which device, which sizes, and the options of every stage; each flag has a key here."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, Strict, model_validator

from tilec.artifact import digest_object
from tilec.spec.located import Spec

# A validator that runs before the model leaves JSON behind, and with it the leave to make a tuple of a list.
_FROM_LIST = Strict(False)


LARGEST = 1 << 40
"""No symbolic size is larger."""


class Dimension(Spec):
    """What is known of a symbolic size: its value, or range, divisor and likely values (B06)."""

    value: int | None = Field(default=None, ge=0, le=LARGEST)
    range: Annotated[tuple[int, int], _FROM_LIST] | None = None
    divisor: int = Field(default=1, gt=0)
    likely: Annotated[tuple[int, ...], _FROM_LIST] = ()

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> "Dimension":
        low, high = self.range if self.range is not None else (0, None)
        if low < 0 or (high is not None and high < low):
            raise ValueError(f"the range {self.range} holds no size")
        for size in (*self.likely, *(() if self.value is None else (self.value,))):
            if size < low or (high is not None and size > high) or size % self.divisor:
                raise ValueError(f"{size} is not in the range or not divisible by {self.divisor}")
        return self


def _from_int(value: Any) -> Any:
    return {"value": value} if isinstance(value, int) and not isinstance(value, bool) else value


Size = Annotated[Dimension, BeforeValidator(_from_int, json_schema_input_type=int | Dimension)]


class ImportOptions(Spec):
    """Options of `import`: the passes to run, in order (all of them when absent)."""

    passes: tuple[str, ...] | None = None
    print_between_passes: bool = Field(default=False, description="say what every pass alters")


class ScheduleOptions(Spec):
    """Options of `schedule`: how far to fuse, what to minimise, how many candidates to look at, by what (W17, W20)."""

    fusion: Literal["none", "register", "full"] = "full"
    objective: Literal["time", "traffic", "footprint"] = "time"
    passes: tuple[str, ...] | None = Field(
        default=None,
        description="graph passes that run, in order, and steps of the search (default: all; names of one kind alone "
        "leave the other kind as it is)",
    )
    closed: tuple[str, ...] = Field(default=(), description="levels below a core's at which nothing is connected")
    budget: int = Field(default=20, gt=0, description="candidates of a group that are costed exactly, or measured")
    profile: bool = Field(default=False, description="measure candidates on this machine, keep the times in a record")
    record: str | None = Field(
        default=None, description="file of the tuning record (default with profile: tuning.json beside the plan)"
    )
    print_between_passes: bool = Field(default=False, description="say what every pass and step alters")
    bounds: bool = Field(default=True, description="whether the plan carries the least traffic known of its groups")


class CodegenOptions(Spec):
    """Options of `codegen`; what is absent comes from the device."""

    threads: int | None = Field(default=None, gt=0, description="worker threads (default: cores of the device)")
    processor: str | None = Field(default=None, description="overrides the device's target.processor")
    features: tuple[str, ...] | None = Field(default=None, description="overrides the device's target.features")
    print_between_passes: bool = Field(default=False, description="say what every pass over a kernel alters")


class VerifyOptions(Spec):
    """Options of `verify`; the tolerance follows from types and reduction lengths when absent."""

    seeds: tuple[int, ...] = Field(
        default=(0, 1), min_length=1, description="one draw of inputs each, in turn of mean 0 and of mean 3"
    )
    tolerance: float | None = Field(default=None, gt=0, description="largest |a-b| / max|a| of an output")
    reference: Literal["onnxruntime"] = "onnxruntime"
    per_group: bool = Field(default=False, description="compare every group on its own, too")
    inputs: str | None = Field(default=None, description="a .npz file with the model's inputs, instead of random ones")


class CompileRecipe(Spec):
    """How to compile: `tilec compile model.onnx --recipe FILE`."""

    kind: Literal["compile"] = "compile"
    device: str = Field(default="host", description="name or file of a device; host is this machine")
    shapes: dict[str, Size] = Field(default_factory=dict, description="symbolic size -> value or what is known")
    types: dict[str, str] = Field(default_factory=dict, description="pattern of tensor names -> tType")
    import_: ImportOptions = Field(default_factory=ImportOptions, alias="import")
    schedule: ScheduleOptions = Field(default_factory=ScheduleOptions)
    codegen: CodegenOptions = Field(default_factory=CodegenOptions)
    verify: VerifyOptions = Field(default_factory=VerifyOptions)
    fallback: Literal["allow", "refuse"] | tuple[str, ...] = Field(
        default="allow", description="operators that may run on onnxruntime: all, none, or these"
    )

    def digest(self, *sections: str) -> str:
        """sha256 of the named top-level keys, so that a stage goes stale only when what it reads changes.

        Of a tuning record and of inputs the content counts, not where they are or who wrote them.
        """
        told = "print_between_passes"
        left_out = {"import_": {told}, "schedule": {"profile", "record", told}, "codegen": {told}, "verify": {"inputs"}}
        everything = self.model_dump(mode="json", exclude=left_out)
        return digest_object({name: everything[name] for name in sections})


class BenchRecipe(Spec):
    """What to time against what: `tilec bench --recipe FILE`."""

    kind: Literal["bench"]
    device: str = "host"
    models: tuple[str, ...] = Field(min_length=1, description="names of the zoo or ONNX files")
    against: tuple[str, ...] = ("onnxruntime",)
    threads: int | None = Field(default=None, gt=0)
    processes: int = Field(default=3, gt=0)
    rounds: int = Field(default=5, gt=0, description="interleaved rounds in each process")
