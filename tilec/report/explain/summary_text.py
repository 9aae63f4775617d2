"""The summary of a plan as text."""

from __future__ import annotations

from collections.abc import Sequence

from tilec.analysis.explain.summary import Summary
from tilec.errors import several
from tilec.ir.graph import Rounding
from tilec.ir.sizes import sizes_text
from tilec.report.explain.layout import amount, some, table, text_of_lines
from tilec.report.explain.reductions_text import spread_text
from tilec.report.formatting import time_text
from tilec.scheduler.refusals import NOT_ROUNDED, REASONS


def rounding_text(rounding: Rounding) -> str:
    """`a15: scales of 32 elements, multiplied by vpmaddwd`, or why a product is exact."""
    if rounding.unit:
        return f"{rounding.compute}: scales of {rounding.block} elements, multiplied by {rounding.unit}"
    why = NOT_ROUNDED.get(rounding.reason, "the pass round_activations was left out")
    return f"{rounding.compute}: exact, {why}"


def summary_text(explanation: Summary, plan: str, scenarios: Sequence[str] = ()) -> str:
    """The summary of a plan, with lines about its scenarios; `plan` is how the user named it."""
    lines = [
        f"{explanation.name} on {explanation.device}: {several(len(explanation.groups), 'group')}, "
        f"fusion {explanation.fusion}, least {explanation.objective}"
        + (f", predicted {time_text(explanation.picoseconds)}" if explanation.picoseconds else "")
        + (f"; figures at {sizes_text(explanation.sizes)}" if explanation.sizes else "")
    ]
    lines += ["", f"whole plans compared, by estimates of the search ({explanation.unit})"]
    lines += table(
        [
            [
                ", ".join((f"fusion {each.fusion}", *each.without)),
                amount(each.cost, explanation.unit),
                several(each.groups, "group"),
                "taken" if each.taken else "",
            ]
            for each in explanation.candidates
        ],
        right=(1,),
    )
    if explanation.reductions:
        lines += ["", "reductions"]
        lines += table([[some(each.nodes, 1), spread_text(each.decision)] for each in explanation.reductions])
    if explanation.roundings:
        lines += ["", "products that may round their activations"]
        lines += table([[some(each.nodes, 1), rounding_text(each.rounding)] for each in explanation.roundings])
    lines += ["", *scenarios] if scenarios else []
    lines += ["", "groups"]
    variants = ["variants"] if explanation.sizes else []
    rows = [["", "group", "operators", "nodes", "connected at", "predicted", "bytes", *variants, "not connected"]]
    for group in explanation.groups:
        refused = " ".join(f"{code}={count}" for code, count in group.refused.items())
        rows.append(
            [
                str(group.number),
                group.name,
                some(group.operators.split(), 4),
                str(group.nodes),
                " ".join(group.levels) or "-",
                time_text(group.picoseconds),
                "-" if group.traffic is None else f"{group.traffic:,}",
                *([str(group.variants)] if explanation.sizes else []),
                refused or "-",
            ]
        )
    lines += table(rows, right=(0, 3, 5, 6, 7) if variants else (0, 3, 5, 6))
    if explanation.launches:
        lines += ["", "groups that share a launch"]
        lines += table(
            [[some(each.groups, 8), time_text(each.picoseconds)] for each in explanation.launches], right=(1,)
        )
    if explanation.refused:
        lines += ["", "edges between groups"]
        lines += table(
            [[code, str(count), REASONS.get(code, "")] for code, count in explanation.refused.items()], right=(1,)
        )
    lines += ["", "ask", f"  tilec explain {plan} --group 1", f"  tilec explain {plan} --edge A->B"]
    lines += [f"  tilec explain {plan} --node A"]
    return text_of_lines(lines)
