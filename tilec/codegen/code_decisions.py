"""Decisions about code that the back end of a device does not take: vectors on a GPU, threads of a block on a CPU."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tilec.ir.decisions import entries
from tilec.ir.plan import Refusal, Variant


def foreign_decisions(variant: Variant, own: Collection[str]) -> Iterator[Refusal]:
    """What a variant decides about code beside the fields that are a back end's `own`."""
    for entry in entries(variant):
        if entry.decision.effect == "code" and entry.decision.name not in own:
            level, why = entry.level or variant.levels[-1], "the device's code generator does not decide that"
            yield Refusal(entry.subject or level, "unused", {"what": entry.decision.what, "level": level, "why": why})
