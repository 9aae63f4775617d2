"""Sizes that vary, on a page: what is allowed, which sizes the figures are for, which variants run there."""

from __future__ import annotations

from typing import Any

from tilec.analysis.size_variants import constraint_facts, symbol_facts, variant_facts
from tilec.artifact import encode
from tilec.ir.expr import variables
from tilec.ir.plan import Group
from tilec.ir.sizes import sizes_text
from tilec.ir.text import text_of
from tilec.report.html.shown import Shown


def sizes_data(shown: Shown) -> dict[str, Any] | None:
    """The sizes of a plan with symbols, None of any other."""
    if shown.whole is None:
        return None
    constraints = [{"holds": holds, "origin": origin} for holds, origin in constraint_facts(shown.whole)]
    symbols = [encode(each) for each in symbol_facts(shown.whole)]
    return {"at": sizes_text(shown.at), "constraints": constraints, "symbols": symbols}


def variants_data(shown: Shown, group: Group) -> dict[str, Any]:
    """What a group of a plan with symbols has beside its figures: all variants, the number of the one that runs, and
    operations and footprints as expressions. Nothing of any other plan."""
    if shown.whole is None:
        return {}
    whole = next(each for each in shown.whole.groups if each.name == group.name)
    held = {level: text_of(size) for level, size in whole.cost.footprint.items() if variables(size)}
    runs = [number for number, each in enumerate(variant_facts(whole, shown.at)) if each.runs]
    return {
        "expressions": {"operations": text_of(whole.cost.flops), "footprint": held},
        "kernels": [variant.kernel for variant in whole.variants],
        "runs": runs[0] if runs else None,
        "variants": [encode(variant) for variant in whole.variants],
    }
