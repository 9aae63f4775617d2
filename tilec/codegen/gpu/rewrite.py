"""Kernels with other steps: what passes that look at steps one by one have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from tilec.codegen.gpu.kernel_ir import KernelIR, Nested, Step, Tile
from tilec.codegen.gpu.ranges import inside, of_body
from tilec.ir.known_ranges import KnownRanges

Rule = Callable[[Step, KnownRanges], tuple[Step, ...]]
"""What stands for a step, whose own body is rewritten, where some ranges hold."""


def rewritten(kernel: KernelIR, rule: Rule, ranges: KnownRanges) -> KernelIR:
    """The kernel with other steps, those inside a step before it; `ranges` are those of its symbols."""
    return replace(kernel, body=_body(kernel.body, rule, of_body(kernel, ranges)))


def _body(body: Sequence[Step], rule: Rule, ranges: KnownRanges) -> tuple[Step, ...]:
    return tuple(each for step in body for each in rule(_within(step, rule, ranges), ranges))


def _within(step: Step, rule: Rule, ranges: KnownRanges) -> Step:
    if isinstance(step, Nested):
        return replace(step, body=_body(step.body, rule, inside(step, ranges)))
    if isinstance(step, Tile) and step.meanwhile:
        return replace(step, meanwhile=_body(step.meanwhile, rule, ranges))
    return step


def with_tiles(kernel: KernelIR, tiles: Sequence[Tile]) -> KernelIR:
    """The kernel with other tiles in the places of its own."""
    rest = iter(tiles)
    return replace(kernel, body=_with_tiles(kernel.body, rest))


def _with_tiles(body: Sequence[Step], rest: Iterator[Tile]) -> tuple[Step, ...]:
    return tuple(
        next(rest)
        if isinstance(step, Tile)
        else replace(step, body=_with_tiles(step.body, rest))
        if isinstance(step, Nested)
        else step
        for step in body
    )
