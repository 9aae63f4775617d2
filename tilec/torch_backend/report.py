"""What PyTorch keeps of a graph, and why, as users read it."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from torch import fx

from tilec.api.warn_once import warn_once
from tilec.errors import TilecError, UnsupportedError, several

log = logging.getLogger("tilec")

SHOWN = 8
"""Kinds of operators that one warning names."""

MORE = (
    "The results are PyTorch's, only tilec's speed is missing there. "
    'TORCH_LOGS="+tilec" (the logger "tilec") shows each operator with its line of the model; '
    'options={"strict": True} makes this an error.'
)


@dataclass(frozen=True, slots=True)
class Kept:
    """A call that PyTorch runs."""

    operator: str
    reason: str


@dataclass(frozen=True, slots=True)
class Report:
    """How many calls a graph has, and those that PyTorch `kept` for a reason, by name; `native` is the number of those
    that tilec runs, which are fewer than the others where a part was too small for a model of its own."""

    calls: int
    native: int
    kept: Mapping[str, Kept]

    def text(self) -> str:
        """The operators, each once, with the reason."""
        counts = Counter(self.kept.values())
        lines = [
            f"\n  {each.operator}{f' ({count} times)' if count > 1 else ''}: {each.reason}"
            for each, count in counts.most_common(SHOWN)
        ]
        rest = f"\n  and {several(len(counts) - SHOWN, 'other kind')}" if len(counts) > SHOWN else ""
        left = several(len(self.kept), "operator")
        return f"PyTorch runs {left} of a graph of {self.calls} that tilec compiles:{''.join(lines)}{rest}"


def reasons(module: fx.GraphModule, refused: Mapping[str, str]) -> dict[str, Kept]:
    """The calls of a graph that are refused, for a report; each is told to the log."""
    kept = {}
    for node in module.graph.nodes:
        if node.name in refused:
            kept[node.name] = Kept(str(node.target), refused[node.name])
            told = (node.format_node(), refused[node.name], node.meta.get("stack_trace") or "of no known line")
            log.debug("PyTorch keeps %s: %s\n%s", *told)
    return kept


def tell(report: Report, strict: bool) -> None:
    """Log the share of a graph that tilec runs, and warn of what PyTorch keeps. Raises UnsupportedError with the same
    words where `strict`."""
    log.info("tilec runs %d of %d operators of a graph", report.native, report.calls)
    if not report.kept:
        return
    if strict:
        raise UnsupportedError(report.text(), hint="Leave options={'strict': True} out to let PyTorch run them.")
    warn_once(f"{report.text()}\n{MORE}")


def reason_of(error: BaseException) -> str:
    """An error in a line: what is wrong, without hints on files that the user never wrote."""
    text = error.message if isinstance(error, TilecError) else str(error)
    return f"tilec cannot compile it ({' '.join(text.split()) or type(error).__name__})"
