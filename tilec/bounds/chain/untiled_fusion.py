"""Untiled fusion: intermediate tensors stay in the buffer whole, the operators are unconstrained (Orojenesis,
fusion)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tilec.bounds.chain.chain import Product, ProductChain
from tilec.bounds.chain.segments import ChainCurve, Choices, Segment, Step
from tilec.bounds.chain.step_curves import StepCurve, best, in_turn
from tilec.bounds.einsum.cache import cached
from tilec.bounds.einsum.einsum import Operand


def untiled_curve(chain: ProductChain, ragged: bool = False) -> ChainCurve:
    """The least traffic over all sets of tensors that stay, each from the operator that writes it to the next.

    While an operator runs, the buffer contains its resident input and output, and the tiles of its other tensors.
    """
    choices = Choices()
    last = len(chain.operators) - 1
    reached: dict[bool, StepCurve] = {}
    for slot in range(last + 1):
        now = {}
        for stays in (False, True) if slot < last else (False,):
            if slot == 0:
                now[stays] = _operator(chain, slot, False, stays, ragged, choices)
            else:
                now[stays] = best([
                    in_turn(before, _operator(chain, slot, read, stays, ragged, choices))
                    for read, before in reached.items()
                ])  # fmt: skip
        reached = now
    tiles = "tiles of any size" if ragged else "perfect factors"
    return choices.curve(f"whole tensors stay between operators, {tiles}, all loop orders", reached[False])


def _operator(chain: ProductChain, slot: int, read: bool, written: bool, ragged: bool, choices: Choices) -> StepCurve:
    """One operator whose input (`read`) or output (`written`) is in the buffer whole and moves nothing."""
    product = chain.operators[slot]
    full = product.einsum()
    # A result of one byte stands for an output that stays; its byte is subtracted again.
    none = Operand("none", (), 8)
    left = replace(full, inputs=full.inputs[1:] if read else full.inputs, output=none if written else full.output)
    curve = cached(left, "oro+" if ragged else "oro")
    off = int(written)
    resident = _resident_bytes(product, read, written)
    stay = ", ".join(name for name, stays in (("I", read), ("O", written)) if stays)

    def make(row: int) -> Segment:
        point = curve.points[row]
        step = Step(product.name, f"{stay} whole" if stay else "alone", point.mapping.tiles)
        return Segment((step,), point.accesses - off)

    buffer = np.array([point.buffer_bytes + resident - off for point in curve.points], np.int64)
    traffic = np.array([point.traffic_bytes - off for point in curve.points], np.int64)
    first = choices.add(len(buffer), make, curve.mappings)
    return StepCurve.of(buffer, traffic, first, slot, len(chain.operators))


def _resident_bytes(product: Product, read: bool, written: bool) -> int:
    """Bytes of the tensors that stay whole."""
    bits = read * product.input_words * product.input_bits + written * product.output_words * product.output_bits
    return -(-bits // 8)
