"""A recipe as data: which device, which sizes, and the options of every stage; each flag has a key here."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, Strict, model_validator

from tilec.artifact import digest_object
from tilec.ir.formats import parse_format
from tilec.spec.located import Disagreement, Refused, Spec

# A validator that runs before the model leaves JSON behind, and with it the leave to make a tuple of a list.
_FROM_LIST = Strict(False)


LARGEST = 1 << 40
"""No symbolic size is larger."""


class Dimension(Spec):
    """A symbolic size: its value, or range, divisor and likely values (BladeDISC, shape constraints).

    A value outside of the range or not divisible by the divisor is refused, whatever binds it. A size that is not
    bound is any of the range; tiles are best at the likely values, or at the usual one moved into the range.
    """

    value: int | None = Field(default=None, ge=0, le=LARGEST, description="the size, which is bound to it")
    range: Annotated[tuple[int, int | None], _FROM_LIST] | None = Field(
        default=None, description="least and largest size, null for no limit"
    )
    divisor: int = Field(default=1, gt=0, description="number that divides every size")
    likely: Annotated[tuple[int, ...], _FROM_LIST] = Field(
        default=(), description="sizes that a plan for all sizes is best at, the most frequent first"
    )

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> "Dimension":
        low, high = self.limits
        if low < 0 or -(-low // self.divisor) * self.divisor > high:
            ends = ", ".join("null" if end is None else str(end) for end in self.range or ())
            raise ValueError(f"the range [{ends}] holds no size that is divisible by {self.divisor}")
        values = [("value", self.value)] if self.value is not None else []
        for key, size in (*values, *(("likely", each) for each in self.likely)):
            if not low <= size <= high:
                raise Disagreement(f"{size} is not in the range from {low} to {high}", key, "range")
            if size % self.divisor:
                raise Disagreement(f"{size} is not divisible by {self.divisor}", key, "divisor")
        return self

    @property
    def limits(self) -> tuple[int, int]:
        """The least and the largest size."""
        low, high = self.range if self.range is not None else (0, None)
        return low, LARGEST if high is None else high

    @property
    def is_known(self) -> bool:
        """Whether anything is said of a size that is not bound."""
        return self.value is None and (self.range is not None or self.divisor > 1 or bool(self.likely))


def _from_int(value: Any) -> Any:
    return {"value": value} if isinstance(value, int) and not isinstance(value, bool) else value


Size = Annotated[Dimension, BeforeValidator(_from_int, json_schema_input_type=int | Dimension)]


def _format(text: str) -> str:
    return text if text == KEEP else str(parse_format(text))


KEEP = "keep"
"""The format of weights that stay as they are."""

WeightFormat = Annotated[str, AfterValidator(_format)]


def _relation(text: int | str) -> int | str:
    if isinstance(text, int):
        return text
    from tilec.ir.algebra import linear_form
    from tilec.ir.expr import Var
    from tilec.ir.text import parse_expr, text_of

    try:
        parts, _ = linear_form(parse_expr(text))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{text!r} is no size: {error}") from None
    if not all(isinstance(part, Var) for part in parts):
        raise ValueError(f"{text!r} is no sum of sizes and numbers, like past + 1")
    return text_of(parse_expr(text))


Relation = Annotated[Annotated[int, Field(ge=0, le=LARGEST)] | str, AfterValidator(_relation)]
"""A size of a scenario: a number, or a sum of other sizes, their multiples and numbers."""


class ImportOptions(Spec):
    """Options of `import`."""

    refused: ClassVar[Mapping[str, Refused]] = {
        "passes": Refused("import has no passes that could be left out", "`schedule.passes` chooses those of schedule.")
    }

    print_between_passes: bool = Field(default=False, description="say what every pass alters")


class ScheduleOptions(Spec):
    """Options of `schedule`: how far to fuse, what to minimise, how many candidates to look at, by what (W17, W20)."""

    fusion: Literal["none", "register", "apollo", "full"] = Field(
        default="full",
        description="none: one node a group; register: elementwise nodes share registers; apollo: groups by a table of "
        "rules, for comparison; full: all levels",
    )
    effort: Literal["quick", "full"] = Field(
        default="full",
        description="quick: full fusion is not searched for; elementwise nodes share registers by rules, and tiles are "
        "chosen for that",
    )
    objective: Literal["time", "traffic", "footprint"] = Field(
        default="time", description="what the search minimises: predicted time, bytes at the lowest level, memory"
    )
    passes: tuple[str, ...] | None = Field(
        default=None,
        description="graph passes that run, in order, and steps of the search (default: all; names of one kind alone "
        "leave the other kind as it is)",
    )
    units: tuple[str, ...] | None = Field(
        default=None, description="compute units of the device, by name, that plans may use (default: all)"
    )
    closed: tuple[str, ...] = Field(default=(), description="levels below a core's at which nothing is connected")
    group_nodes: int = Field(
        default=256, gt=1, description="nodes of a group of several parts at most: a look at it takes time in them"
    )
    variants: int = Field(
        default=3, gt=0, description="kernels of a group for classes of sizes that vary, that for all of them included"
    )
    budget: int = Field(default=20, gt=0, description="candidates of a group that are costed exactly, or measured")
    profile: bool = Field(default=False, description="measure candidates on this machine, keep the times in a record")
    record: str | None = Field(
        default=None, description="file of the tuning record (default with profile: tuning.json beside the plan)"
    )
    print_between_passes: bool = Field(default=False, description="say what every pass and step alters")
    bounds: bool = Field(default=False, description="whether the plan carries the best traffic known of its groups")

    @property
    def tried_fusion(self) -> Literal["none", "register", "apollo", "full"]:
        """How far plans are fused at most, with this effort."""
        return "register" if self.effort == "quick" and self.fusion == "full" else self.fusion


class CodegenOptions(Spec):
    """Options of `codegen`; what is absent comes from the device."""

    threads: int | None = Field(default=None, gt=0, description="worker threads (default: cores of the device)")
    processor: str | None = Field(default=None, description="overrides the device's target.processor")
    features: tuple[str, ...] | None = Field(default=None, description="overrides the device's target.features")
    print_between_passes: bool = Field(default=False, description="say what every pass over a kernel alters")


class AccuracyOptions(Spec):
    """How far a quantised model may be from the float model behind it."""

    relative: float = Field(
        gt=0, description="largest distance of an output from the float model's, root mean square over the same of it"
    )


class VerifyOptions(Spec):
    """Options of `verify`; the tolerance follows from types and reduction lengths when absent."""

    seeds: tuple[int, ...] = Field(
        default=(0, 1), min_length=1, description="one draw of inputs each, in turn of mean 0 and of mean 3"
    )
    tolerance: float | None = Field(default=None, gt=0, description="largest |a-b| / max|a| of an output")
    reference: Literal["onnxruntime"] = Field(default="onnxruntime", description="whose outputs are the expected ones")
    per_group: bool = Field(default=False, description="compare every group on its own, too")
    inputs: str | None = Field(default=None, description="a .npz file with the model's inputs, instead of random ones")
    sizes: tuple[dict[str, int], ...] = Field(
        default=(), description="sizes of symbols to verify at, instead of samples; symbols left out: the plan's own"
    )
    least_share: float = Field(default=0.0, ge=0, le=1, description="share of groups below which a pass is refused")
    allow_unverified: bool = Field(
        default=False, description="whether a model that nothing can be said about passes: `verified on: nothing`"
    )
    on: Literal["host", "emulator", "machine"] | None = Field(
        default=None,
        description="what runs the code: this machine, the emulator of GPU kernels, the tile machine; the first that "
        "can unless it is said",
    )
    accuracy: AccuracyOptions | None = Field(
        default=None, description="limit of the distance from the float model, which is only told without it"
    )


class CompileRecipe(Spec):
    """A compilation: `tilec compile model.onnx --recipe FILE`."""

    kind: Literal["compile"] = Field(default="compile", description="of the recipe")
    device: str = Field(default="host", description="name or file of a device; host is this machine")
    shapes: dict[str, Size] = Field(default_factory=dict, description="symbolic size -> value or what is known")
    scenarios: dict[str, dict[str, Relation]] | None = Field(
        default=None,
        description="name -> sizes that occur together, each a number or a sum of other sizes, like total: past + 1; "
        "the plan is best at the first (default: what the model's states imply)",
    )
    import_: ImportOptions = Field(default_factory=ImportOptions, alias="import", description="options of import")
    schedule: ScheduleOptions = Field(default_factory=ScheduleOptions, description="options of schedule")
    codegen: CodegenOptions = Field(default_factory=CodegenOptions, description="options of codegen")
    types: dict[str, WeightFormat] = Field(
        default_factory=dict,
        description="pattern of names of float weights -> a format like i4[128]*f16 that import rounds them to, or "
        "keep; the first pattern that matches counts; one that matches no weight is for inputs that are states in "
        "place, of which each row is rounded to i8[64]*f16 or the like when it is written",
    )
    compute: dict[str, Literal["exact", "a8", "a15"]] = Field(
        default_factory=dict,
        description="pattern of names of weights of few bits -> how their products are computed: exact, or with "
        "activations rounded to integers of 8 bits (a8) or of 15 bits and a sign (a15) where a unit multiplies them; "
        "the first pattern that matches counts",
    )
    state: Literal["separate", "same-shape", "in-place"] | dict[str, str] = Field(
        default="separate",
        description="which inputs are states, updated in place: an output is the same memory with new rows, as a cache "
        "of keys; separate: none, in-place: all that the model's form allows, same-shape: of these those "
        "that do not grow, which leaves the model's inputs as they are, or pairs input: output",
    )
    verify: VerifyOptions = Field(default_factory=VerifyOptions, description="options of verify")
    fallback: Literal["allow", "refuse"] | tuple[str, ...] = Field(
        default="allow", description="operators that may run on onnxruntime: all, none, or these"
    )
    while_compiling: Literal["wait", "fallback"] | None = Field(
        default=None,
        description="what calls of a session do until their model is compiled: wait, or run on onnxruntime or PyTorch "
        "(default: that of the interface)",
    )

    def digest(self, *sections: str) -> str:
        """sha256 of the named top-level keys, so that a stage goes stale only when what it reads changes.

        Of a tuning record and of inputs the content counts, not where they are or who wrote them.
        """
        told = "print_between_passes"
        left_out = {
            "import_": {told},
            "schedule": {"profile", "record", told},
            "codegen": {told},
            "verify": {"inputs", "allow_unverified"},
        }
        if self.schedule.units is None:
            left_out["schedule"].add("units")
        if not self.verify.sizes:
            left_out["verify"].add("sizes")
        if self.verify.on is None:
            left_out["verify"].add("on")
        if self.verify.accuracy is None:
            left_out["verify"].add("accuracy")
        everything = self.model_dump(mode="json", exclude=left_out)
        absent = {name for name in ("types", "compute") if not everything[name]}
        absent |= {"scenarios"} if self.scenarios is None else set()
        sections = tuple(name for name in sections if name not in absent)
        return digest_object({name: everything[name] for name in sections})


class BenchRecipe(Spec):
    """Models to time against other runtimes: `tilec bench --recipe FILE`."""

    kind: Literal["bench"] = Field(description="of the recipe")
    device: str = Field(default="host", description="name or file of the device that models are compiled for")
    models: tuple[str, ...] = Field(min_length=1, description="names of the zoo or ONNX files")
    against: tuple[str, ...] = Field(default=("onnxruntime",), description="onnxruntime, openvino, or both")
    threads: int | None = Field(
        default=None, gt=0, description="threads of each runtime (default: cores of the device)"
    )
    processes: int = Field(default=3, gt=0, description="processes that measure each runtime, one after the other")
    rounds: int = Field(default=5, gt=0, description="interleaved rounds in each process")
