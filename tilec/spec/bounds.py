"""Bounds as data: Einsums and chains, which mappings to search, and what to compare them with (O24-O30, O35)."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from tilec.spec.located import Spec
from tilec.spec.quantities import Bytes, BytesPerSecond

LARGEST = 1 << 40
"""No extent is larger."""

Extent = Annotated[int, Field(gt=0, le=LARGEST)]
Width = Annotated[int, Field(gt=0, le=1024)]


class Operator(Spec):
    """One product of a chain: O[m, n] = sum(k, I[m, k] * W[k, n]) for every head."""

    name: str = Field(min_length=1, description="name of the product in mappings")
    m: Extent = Field(description="rows")
    k: Extent = Field(description="of one head")
    n: Extent = Field(description="of one head")
    heads: Extent = Field(default=1, description="products side by side in a row")
    batches: Extent = Field(default=1, description="groups of rows that have weights of their own (keys, values)")
    rows: Literal["free", "whole", "softmax"] = Field(
        default="free", description="what follows needs whole rows (a norm), or is a softmax"
    )
    weight_bits: Width | None = Field(default=None, description="of an element of W (default: bits of the chain)")


class Part(Spec):
    """An Einsum or a chain, with the bits of its elements."""

    name: str = Field(default="", description="name of the part in tables")
    einsum: str | None = Field(default=None, description="such as C[m,n] = sum(k, A[m,k] * B[k,n])")
    dims: dict[str, Extent] = Field(default_factory=dict, description="iterator of the Einsum -> extent")
    chain: tuple[Operator, ...] | None = Field(
        default=None, min_length=1, description="products of which each reads the result of the one before"
    )
    bits: Width | dict[str, Width] = Field(description="of all elements, or of an Einsum's tensor -> bits")

    @model_validator(mode="after")
    def _one_of_two(self) -> "Part":
        if (self.einsum is None) == (self.chain is None):
            raise ValueError("a part is an einsum or a chain, one of the two")
        if self.chain is not None and (self.dims or not isinstance(self.bits, int)):
            raise ValueError("a chain has no dims, and one number of bits")
        return self


class Measured(Spec):
    """A measured number of bytes, to stand beside the curve."""

    name: str = Field(min_length=1, description="label of the measurement")
    capacity: Bytes = Field(description="of the buffer")
    traffic: Bytes = Field(description="measured between the buffer and its backing store")


class Area(Spec):
    """A die that multipliers and a buffer share (O28)."""

    die_mm2: float = Field(gt=0, description="area of the die in square millimetres")
    share: float = Field(default=1, gt=0, le=1, description="of the die that multipliers and buffer take")
    mac_um2: float = Field(gt=0, description="area of a multiplier in square micrometres")
    byte_um2: float = Field(gt=0, description="area of a byte of the buffer in square micrometres")
    clock_hz: float = Field(gt=0, description="multiply-adds of one multiplier in a second")
    bandwidth: BytesPerSecond = Field(gt=0, description="of the memory below the buffer")
    samples: int | None = Field(
        default=None, gt=1, description="buffers tried, evenly apart (default: all that matter)"
    )
    published: int | None = Field(
        default=None, gt=0, description="as the paper's notebook: so many operations, words moved at one byte each"
    )


class BoundsRecipe(Spec):
    """The least data movement of a workload: `tilec bounds RECIPE`."""

    kind: Literal["bounds"] = Field(description="of the recipe")
    convention: str = Field(min_length=1, description="what is counted and how, printed with the numbers")
    workload: tuple[Part, ...] = Field(min_length=1, description="parts run in turn, each with the whole buffer")
    mapspace: Literal["oro", "oro+"] = Field(default="oro", description="tiles that divide their extents, or any")
    fusion: Literal["none", "untiled", "ffmt", "flat", "flash"] = Field(default="ffmt", description="within chains")
    cuts: bool = Field(default=True, description="whether chains may be cut")
    scheme: Literal[1, 2, "pipelined"] = Field(default=1, description="how the buffer of fused operators adds up")
    capacities: tuple[Bytes, ...] = Field(default=(), description="to tell the traffic at")
    measured: tuple[Measured, ...] = Field(default=(), description="measurements beside the curve")
    area: Area | None = Field(default=None, description="die for the area mountain of a plot")
