"""Chains of matrix products, each reading the result of the one before it (Orojenesis, figure 15)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Literal

from tilec.bounds.einsum.einsum import Einsum, parse_einsum
from tilec.errors import ConfigError


@dataclass(frozen=True)
class Product:
    """O[m, n] = sum(k, I[m, k] * W[k, n]), once per head.

    `heads` products stand side by side in a row, which has heads * k elements of I and heads * n of O; W has heads * k
    * n elements. The `m` rows are `batches` groups of consecutive rows with a W of their own each (keys and values of
    attention). `rows` describes the operators that follow: none (`free`), one that needs `whole` rows (a norm), or a
    `softmax`, which needs whole rows unless it is rescaled as columns arrive.
    """

    name: str
    m: int
    k: int
    n: int
    heads: int = 1
    batches: int = 1
    rows: Literal["free", "whole", "softmax"] = "free"
    input_bits: int = 16
    weight_bits: int = 16
    output_bits: int = 16

    def __post_init__(self) -> None:
        for key in ("m", "k", "n", "heads", "batches", "input_bits", "weight_bits", "output_bits"):
            if getattr(self, key) < 1:
                raise ConfigError(f"{key} is {getattr(self, key)}", self.name, "Sizes are 1 or more.")
        if self.m % self.batches:
            raise ConfigError(f"{self.m} rows are not {self.batches} equal batches", self.name)

    @property
    def macs(self) -> int:
        """Multiply-adds."""
        return self.heads * self.m * self.k * self.n

    @property
    def input_words(self) -> int:
        """Elements of I."""
        return self.m * self.heads * self.k

    @property
    def output_words(self) -> int:
        """Elements of O."""
        return self.m * self.heads * self.n

    @property
    def weight_words(self) -> int:
        """Elements of the W of one batch."""
        return self.heads * self.k * self.n

    def einsum(self) -> Einsum:
        """The product as an Einsum; with a W per head and batch, b is an index of every tensor."""
        batch, bits = self.heads * self.batches, {"I": self.input_bits, "W": self.weight_bits, "O": self.output_bits}
        extents = {"m": self.m // self.batches, "n": self.n, "k": self.k}
        if batch == 1:
            return parse_einsum("O[m,n] = sum(k, I[m,k] * W[k,n])", extents, bits)
        return parse_einsum("O[b,m,n] = sum(k, I[b,m,k] * W[b,k,n])", {"b": batch, **extents}, bits)


@dataclass(frozen=True)
class ProductChain:
    """Products of which each reads the output of the one before. Raises ConfigError for mismatched sizes or types."""

    operators: tuple[Product, ...]

    def __post_init__(self) -> None:
        if not self.operators:
            raise ConfigError("a chain without operators")
        names = [each.name for each in self.operators]
        for name in names:
            if names.count(name) > 1:
                raise ConfigError(f"two operators are called {name}", hint="Names tell operators apart.")
        for one, other in pairwise(self.operators):
            output, read = (one.m, one.heads * one.n), (other.m, other.heads * other.k)
            if output != read:
                raise ConfigError(
                    f"{one.name} makes {output[0]} rows of {output[1]}, {other.name} reads {read[0]} rows of {read[1]}",
                    other.name,
                    "The output of an operator is the input of the next: equal m, and heads * n = heads * k.",
                )
            if one.output_bits != other.input_bits:
                raise ConfigError(
                    f"{one.name} makes elements of {one.output_bits} bits, {other.name} reads {other.input_bits}",
                    other.name,
                )

    @cached_property
    def unnamed(self) -> tuple[Product, ...]:
        """The operators with numbers as names: chains that are equal in these have equal traffic."""
        return tuple(replace(each, name=str(position)) for position, each in enumerate(self.operators))

    @property
    def macs(self) -> int:
        """Multiply-adds of all operators."""
        return sum(each.macs for each in self.operators)
