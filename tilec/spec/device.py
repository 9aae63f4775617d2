"""A device as data: memory levels, compute units, what code generation must know (W30, L07).

A level is lowest first: largest and slowest. `units` counts the instances under one instance of the level
below, so SMs are units of shared memory under DRAM and chips are units under a node; no scope is built in.
"""

from collections.abc import Iterable, Mapping
from math import prod
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from tilec.artifact import digest_object
from tilec.errors import ConfigError, did_you_mean
from tilec.ir.dots import DOTS, WORD_TTYPE
from tilec.ir.matrix_units import MatrixUnit, Span
from tilec.ir.types import TTYPES, is_float
from tilec.spec.located import Refused, Spec
from tilec.spec.probe_record import ProbeRecord
from tilec.spec.quantities import Bytes, BytesPerSecond, Femtojoules, FlopsPerSecond, Picoseconds

MOST = 1 << 24
"""No level has more units, no unit takes a wider tile."""


class TTile(Spec):
    """A transaction of a level: `shape` elements of `element` bytes, contiguous along the last axis."""

    element: Bytes = Field(gt=0, description="bytes of one element")
    shape: tuple[Annotated[int, Field(gt=0, le=MOST)], ...] = Field(
        min_length=1, description="elements that move at once; traffic in whole transactions is rounded up to it"
    )

    @property
    def bytes(self) -> int:
        """Bytes of one transaction."""
        total = self.element
        for extent in self.shape:
            total *= extent
        return total


class Bandwidth(Spec):
    """Bytes per second that a level delivers to the level above.

    `total` of all its instances together, `instance` of one, `reader` what one core draws when it is alone.
    """

    total: BytesPerSecond = Field(gt=0, description="of all instances together; divides the traffic of the level")
    instance: BytesPerSecond | None = Field(
        default=None, description="of one instance; limits plans that use few of them (absent: an equal part of total)"
    )
    reader: BytesPerSecond | None = Field(
        default=None, description="of one core that is alone; limits groups with few tasks (absent: that of instance)"
    )


class Access(Spec):
    """The energy of an access of a level, read or write alike: `energy` for `bytes` that move at once."""

    energy: Femtojoules = Field(description="energy of one access; counts in reports, changes no plan")
    bytes: Bytes = Field(gt=0, description="bytes of one access")


class Level(Spec):
    """A memory level; `capacity` in bytes of one instance.

    Levels of one `pool` take their bytes from it: the pool stands beside one instance of the highest of them,
    and what a lower one holds is divided by the instances above it.
    """

    refused: ClassVar[Mapping[str, Refused]] = {
        "banks": Refused("no cost depends on conflicts between banks yet", "Take it out, or make it a comment.")
    }

    name: str = Field(min_length=1, description="name of the level in plans and reports, unique in the device")
    capacity: Bytes = Field(gt=0, description="bytes of one instance; tiles with a larger footprint are refused")
    units: int = Field(
        default=1,
        gt=0,
        le=MOST,
        description="instances under one instance of the level below; the parallelism of plans",
    )
    managed: Literal["explicit", "implicit"] = Field(
        description="scratchpad that programs copy into, or cache that keeps what was read last"
    )
    scope: str = Field(default="", description="name of the spread loops over the units of this level")
    bandwidth: Bandwidth | None = Field(default=None, description="absent where it limits nothing (registers)")
    transaction: TTile = Field(description="what moves at once to and from the level")
    alignment: Bytes = Field(
        default=1,
        gt=0,
        description="addresses at which tensors and buffers start, where the level has addresses: caches have none, "
        "nor have registers, the highest level above the core's",
    )
    asynchronous: bool = Field(
        default=False, description="copies from the lowest level go on while cores compute, and are waited for"
    )
    neighbours_readable: bool = Field(default=False, description="instances read each other")
    write_allocate: bool = Field(default=False, description="a write first reads the line (caches)")
    pool: str | None = Field(default=None, description="name of the capacity pool that it shares")
    access: Access | None = Field(default=None, description="energy of an access, where a source tells it")


def _known_type(name: str) -> str:
    if name not in TTYPES:
        near = did_you_mean(name, TTYPES)
        instead = f"did you mean {near!r}?" if near else f"the types are {', '.join(TTYPES)}"
        raise ValueError(f"no type is called {name!r}; {instead}")
    return name


ElementType = Annotated[str, AfterValidator(_known_type)]
"""Name of a tType."""


class LaneSpan(Spec):
    """How lanes lie along an axis of a fragment: lane number // step % lanes, each with `vector` neighbours a round."""

    lanes: int = Field(default=1, gt=0, le=1024, description="lanes along the axis")
    step: int = Field(default=1, gt=0, le=1024, description="distance of the numbers of neighbouring lanes")
    vector: int = Field(default=1, gt=0, le=64, description="neighbours that a lane holds")

    @property
    def span(self) -> Span:
        """The span of the tile program."""
        return Span(self.lanes, self.step, self.vector)


class Fragments(Spec):
    """What each lane of a warp holds of the operands of a matrix instruction, axis by axis."""

    a: dict[Literal["m", "k"], LaneSpan] | None = Field(
        default=None, description="left factor (absent, with `b`: instructions read both factors in the core's level)"
    )
    b: dict[Literal["k", "n"], LaneSpan] | None = Field(default=None, description="right factor")
    c: dict[Literal["m", "n"], LaneSpan] = Field(description="sums")

    @model_validator(mode="after")
    def _both_factors_or_none(self) -> Self:
        if (self.a is None) != (self.b is None):
            raise ValueError("one factor has no fragment; instructions read both in memory or none")
        return self


class ComputeUnit(Spec):
    """Something that multiplies and adds: its types, the tile that it takes and the rate of all of them together.

    `rate` counts a multiply-add as two operations; `scope` is the spread loop that one instruction belongs to.
    """

    name: str = Field(min_length=1, description="name of the unit in plans")
    inputs: tuple[ElementType, ElementType] = Field(description="types of the two factors")
    accumulator: ElementType = Field(description="type of the sum")
    tile: dict[Literal["m", "n", "k"], Annotated[int, Field(gt=0, le=MOST)]] = Field(
        default_factory=dict, description="extents of the product that one instruction computes (absent: one element)"
    )
    least: dict[Literal["n"], Annotated[int, Field(gt=0, le=MOST)]] = Field(
        default_factory=dict, description="least extents of an instruction; it takes multiples of them up to its tile"
    )
    warps: int = Field(default=1, gt=0, le=32, description="neighbouring warps along m that compute the tile together")
    fragments: Fragments | None = Field(
        default=None, description="lanes of one instruction's operands (absent: GPU code does not use the unit)"
    )
    rate: FlopsPerSecond = Field(gt=0, description="of all units of the device; divides the operations of a group")
    scope: str = Field(default="", description="spread loop whose units execute one instruction together")
    energy: Femtojoules | None = Field(default=None, description="of a multiply-add, where a source tells it")

    @field_validator("fragments")
    @classmethod
    def _fragments_fill_the_tile(cls, fragments: Fragments | None, info: ValidationInfo) -> Fragments | None:
        tile = {**info.data.get("tile", {}), **info.data.get("least", {})}
        tile["m"] = tile.get("m", 1) // info.data.get("warps", 1)
        for name, axes in () if fragments is None else (("a", fragments.a), ("b", fragments.b), ("c", fragments.c)):
            for axis in {"a": "mk", "b": "kn", "c": "mn"}[name] if axes is not None else "":
                of = axes.get(axis)  # type: ignore[union-attr, call-overload]
                if of is None or tile.get(axis, 1) % (of.lanes * of.vector):
                    given = "has no span" if of is None else f"takes {of.lanes} lanes of {of.vector}"
                    raise ValueError(f"fragment {name} {given} along {axis}, where the tile has {tile.get(axis, 1)}")
        return fragments

    @property
    def matrix(self) -> MatrixUnit | None:
        """The unit as one of matrices, of which lanes hold fragments; None for any other."""
        if self.fragments is None:
            return None
        a, b, c = self.fragments.a, self.fragments.b, self.fragments.c
        rows, columns, depth = (self.tile.get(axis, 1) for axis in ("m", "n", "k"))
        return MatrixUnit(
            *(self.name, self.inputs, self.accumulator, rows // self.warps, self.least.get("n", columns), depth),
            (a["m"].span, a["k"].span) if a is not None else None,
            (b["k"].span, b["n"].span) if b is not None else None,
            (c["m"].span, c["n"].span),
            columns,
            self.warps,
        )


class Vector(Spec):
    """SIMD registers: `bytes` of one, `registers` of them in a core."""

    bytes: Bytes = Field(
        gt=0, description="bytes of one register; the width of vectors, on a GPU the lanes of a warp times 4"
    )
    registers: int = Field(gt=0, le=MOST, description="registers of a core; limits the size of register tiles")


class Target(Spec):
    """The target of code generation: its back end, and the processor in the words of its compiler."""

    backend: str = Field(
        min_length=1, description="kind of code generator: cpu, cuda, hip, or that of an installed back end"
    )
    triple: str | None = Field(default=None, description="LLVM target triple")
    processor: str | None = Field(default=None, description="LLVM mcpu, sm_80, gfx90a")
    features: tuple[str, ...] = Field(default=(), description="LLVM attributes such as +avx512f")


class Probe(Spec):
    """How the figures of device `host` were measured: when, and how much other work disturbed them."""

    time: str = Field(
        pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$",
        description="when, in UTC; of two measurements of a machine the newer one is its device `host`",
    )
    busy: float = Field(
        ge=0, le=1, description="share of the cores' time that other work took; above 0.1 the figures are doubtful"
    )
    spread: float = Field(
        ge=0,
        le=1,
        description="how far the median repetition of the compute rate lies below the best; above 0.25 it is doubtful",
    )

    @property
    def disturbed(self) -> bool:
        """Whether the figures may be too low."""
        return ProbeRecord(self.time, self.busy, self.spread).disturbed


class DeviceSpec(Spec):
    """A device. Levels are named; `launch_level` is the one between kernels, `core_level` the one of a core."""

    name: str = Field(min_length=1, description="name of the device in plans and lists")
    kind: str = Field(min_length=1, description="free text such as cpu, gpu, ipu")
    description: str = Field(default="", description="one line for lists and reports")
    levels: tuple[Level, ...] = Field(min_length=2, description="lowest (largest, slowest) first")
    pools: dict[str, Bytes] = Field(
        default_factory=dict, validate_default=True, description="capacity that levels share"
    )
    launch_level: str = Field(description="the level between kernels, not above the one of a core")
    core_level: str = Field(description="the level of one core: a task computes in one instance of it")
    launch_overhead: Picoseconds = Field(default=0, description="time to start one kernel")
    compute: tuple[ComputeUnit, ...] = Field(min_length=1, description="units that multiply and add")
    vector: Vector | None = Field(default=None, description="SIMD registers of a core (absent: scalar code)")
    target: Target = Field(description="target of code generation")
    probe: Probe | None = Field(default=None, description="how the figures were measured; counts in no plan")

    @field_validator("levels")
    @classmethod
    def _levels_have_names_of_their_own(cls, levels: tuple[Level, ...]) -> tuple[Level, ...]:
        names = [level.name for level in levels]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two levels are called {name!r}")
        return levels

    @field_validator("pools")
    @classmethod
    def _pools_exist(cls, pools: dict[str, int], info: ValidationInfo) -> dict[str, int]:
        for level in info.data.get("levels", ()):
            if level.pool is not None and level.pool not in pools:
                raise ValueError(f"level {level.name!r} shares pool {level.pool!r}, which is not given here")
        return pools

    @field_validator("launch_level", "core_level")
    @classmethod
    def _level_exists(cls, name: str, info: ValidationInfo) -> str:
        names = [level.name for level in info.data.get("levels", ())]
        if names and name not in names:
            near = did_you_mean(name, names)
            instead = f"did you mean {near!r}?" if near else f"the levels are {', '.join(names)}"
            raise ValueError(f"no level is called {name!r}; {instead}")
        return name

    @field_validator("core_level")
    @classmethod
    def _kernels_are_launched_on_cores(cls, core: str, info: ValidationInfo) -> str:
        names = [level.name for level in info.data.get("levels", ())]
        launch = info.data.get("launch_level")
        if core in names and launch in names and names.index(launch) > names.index(core):
            raise ValueError(f"core_level {core!r} is below launch_level {launch!r}: a kernel runs on many cores")
        return core

    @property
    def level_names(self) -> tuple[str, ...]:
        """Names of the levels, lowest first."""
        return tuple(level.name for level in self.levels)

    def index(self, name: str) -> int:
        """Position of a level, 0 for the lowest. Raises ValueError when there is none of that name."""
        return self.level_names.index(name)

    def level(self, name: str) -> Level:
        """The level of that name. Raises ValueError when there is none."""
        return self.levels[self.index(name)]

    def instances(self, name: str) -> int:
        """Number of instances of a level in the whole device."""
        total = 1
        for level in self.levels[: self.index(name) + 1]:
            total *= level.units
        return total

    def shared(self, name: str) -> tuple[str, int, int] | None:
        """The pool that an explicit level shares with other explicit ones: its name, its capacity in bytes, and over
        how many pools an instance of the level is divided; None for a level that shares nothing."""
        pool = self.level(name).pool
        sharing = [i for i, level in enumerate(self.levels) if level.managed == "explicit" and level.pool == pool]
        if pool is None or self.index(name) not in sharing or len(sharing) < 2:
            return None
        divided = prod(level.units for level in self.levels[self.index(name) + 1 : sharing[-1] + 1])
        return pool, self.pools[pool], divided

    @property
    def cores(self) -> int:
        """Number of instances of the core level: cores, streaming multiprocessors, tiles."""
        return self.instances(self.core_level)

    def bandwidth(self, name: str, readers: int | None = None) -> int | None:
        """Bytes per second that level `name` delivers to `readers` cores (all when None); None: no limit."""
        given = self.level(name).bandwidth
        if given is None:
            return None
        instances = self.instances(name)
        if readers is None or readers >= self.cores:
            return given.total
        one_instance = given.instance if given.instance is not None else given.total // instances
        one_reader = given.reader if given.reader is not None else one_instance
        return min(given.total, one_instance * min(readers, instances), one_reader * readers)

    @property
    def dot_units(self) -> dict[str, str]:
        """Function of words -> the unit for it that takes a whole register of words, the fastest first; none without
        vectors."""
        if self.vector is None:
            return {}
        lanes = self.vector.bytes * 8 // TTYPES[WORD_TTYPE].bits
        found = [
            (-unit.rate, dot.name, unit.name)
            for dot in DOTS.values()
            for unit in self.compute
            if (*unit.inputs, unit.accumulator) == (*dot.inputs, dot.accumulator)
            and unit.tile == {"n": lanes, "k": dot.count}
        ]
        return {function: name for _, function, name in sorted(found)}

    @property
    def matrix_units(self) -> tuple[tuple[MatrixUnit, int], ...]:
        """Units of matrices with their rates, FLOP/s of the whole device, the fastest first."""
        found = [(unit.matrix, unit.rate) for unit in self.compute if unit.matrix is not None]
        return tuple(sorted(((m, rate) for m, rate in found if m), key=lambda each: (-each[1], each[0].name)))

    def with_units(self, names: Iterable[str], place: str) -> Self:
        """The device with those of its compute units alone. Raises ConfigError at `place` for other names."""
        known = [unit.name for unit in self.compute]
        for name in names:
            if name not in known:
                near = did_you_mean(name, known)
                hint = f"Did you mean {near!r}?" if near else f"Its units are {', '.join(known)}."
                raise ConfigError(f"{self.name} has no compute unit {name!r}", place, hint)
        return self.model_copy(update={"compute": tuple(unit for unit in self.compute if unit.name in names)})

    def peak(self, inputs: tuple[str, str], accumulator: str) -> int:
        """The highest rate for these types, FLOP/s of the whole device; 0 when no unit takes them."""
        fitting = [u.rate for u in self.compute if u.inputs == inputs and u.accumulator == accumulator]
        return max(fitting, default=0)

    @property
    def float_rate(self) -> int:
        """The highest rate for f32, else for any floating-point type, FLOP/s of the whole device; 0 when no unit takes
        one."""
        floats = [unit.rate for unit in self.compute if all(map(is_float, unit.inputs))]
        return self.peak(("f32", "f32"), "f32") or max(floats, default=0)

    @property
    def vector_rate(self) -> int:
        """That of the units that are not of matrices; of all units when there are no others."""
        plain = [unit.rate for unit in self.compute if unit.fragments is None and unit.inputs == ("f32", "f32")]
        return max(plain, default=self.float_rate)

    def digest(self) -> str:
        """sha256 of what plans depend on: comments, formatting, file name, energies and the circumstances of the
        probe do not count."""
        unread: dict[str, Any] = {"levels": {"__all__": {"access"}}, "compute": {"__all__": {"energy"}}, "probe": True}
        return digest_object(self.model_dump(mode="json", exclude=unread))
