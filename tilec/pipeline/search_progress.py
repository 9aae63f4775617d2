"""Progress of the scheduler's search: the running step, and how many parts or groups of all it has decided."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilec.progress import Advance
    from tilec.scheduler.trace import Step, Trace


@dataclass(frozen=True, slots=True)
class SearchProgress:
    """A trace that hands the entries on to another one, and the progress to the stage's listener."""

    trace: "Trace"
    show: "Advance"

    def record(self, step: "Step", before: Any, after: Any) -> None:
        """Hand an entry on, and show that the step is done."""
        self.show(1, 1, step.name)
        self.trace.record(step, before, after)

    def advance(self, name: str, done: int, total: int) -> None:
        """Show how many parts or groups of all the step called `name` has decided."""
        self.show(done, total, name)
