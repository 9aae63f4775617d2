"""What every pass and step of the search changes, as text: the whole graph at first, then differences."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tilec.errors import several

if TYPE_CHECKING:
    from tilec.ir.graph import Graph
    from tilec.scheduler.trace import Step


class PassPrinter:
    """Prints a graph after every pass, called with the pass's name and the graph; and as the trace of a scheduler, the
    steps of the search as well."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._before: dict[str, str] = {}
        self._rules: set[str] = set()

    def record(self, step: "Step", before: Any, after: Any) -> None:
        """A pass of the scheduler over the graph, or a step of its search: the plan that is searched, what the step
        changed in it, and the first time its rule."""
        from tilec.scheduler.refusals import RewrittenGraph
        from tilec.scheduler.state_changes import changes, whole_plan

        if isinstance(after, RewrittenGraph):
            self(step.name, after.graph, self._rule(step))
            return
        lines, plan = changes(before, after), whole_plan(after)
        title = f"after {step.name}" + (f" ({plan})" if plan else "") + (":" if lines else ": unchanged")
        self._tell("\n".join([title, *self._rule(step), *(f"  {line}" for line in lines)]))

    def advance(self, name: str, done: int, total: int) -> None:
        """Print nothing: `record` follows."""

    def _rule(self, step: "Step") -> list[str]:
        new = step.name not in self._rules
        self._rules.add(step.name)
        return [f"  rule: {step.rule}"] if new else []

    def __call__(self, name: str, graph: "Graph", rule: Sequence[str] = ()) -> None:
        """Print how many nodes there are, which are new and which are gone, as tensor expressions with their types."""
        now = dict(_lines(graph))
        title = f"after {name}: {several(len(now), 'node')}{self._unchanged(now)}"
        self._tell("\n".join([title, *rule, *self._changes(now)]))
        self._before = now

    def _unchanged(self, now: dict[str, str]) -> str:
        return ", unchanged" if self._before and now == self._before else ""

    def _changes(self, now: dict[str, str]) -> Iterator[str]:
        yield from (f"  - {text}" for node, text in self._before.items() if now.get(node) != text)
        yield from (f"  + {text}" for node, text in now.items() if self._before.get(node) != text)


def _lines(graph: "Graph") -> Iterator[tuple[str, str]]:
    """Node -> its expression, the type of what it makes, and the extents of its iterators."""
    from tilec.ir.text import tensor_text, text_of

    for node in graph.nodes:
        extents = " ".join(f"{name}={text_of(extent)}" for name, extent in node.expr.domain.items())
        ttype = graph.tensors[node.name].ttype
        yield node.name, f"{tensor_text(node.expr)}  # {ttype}" + (f", {extents}" if extents else "")
