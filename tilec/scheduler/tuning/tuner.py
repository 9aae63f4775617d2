"""Choice among a group's candidates: recorded, fastest of the measured top k, or best by the model (Welder, 3.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tilec.ir.plan import Plan
from tilec.scheduler.building.plan_costs import with_costs
from tilec.scheduler.tuning.decision import Decision, decisions
from tilec.scheduler.tuning.record import Entry, Record, Trial
from tilec.scheduler.tuning.signature import Signature

C = TypeVar("C")

Measure = Callable[[Sequence[Plan]], Sequence[float | None]]
"""Seconds of each plan; None for one that cannot be built or run."""

Keep = Callable[[Entry, Entry | None], Record]

RECORDED, MEASURED = "recorded", "measured"
"""Origins of choices; any other origin is a reason why the cost model chose."""

MARGIN = 0.02
"""Relative speed-up that a candidate must show over one the model ranks higher; smaller differences are noise."""


@dataclass(frozen=True, slots=True)
class Tuning:
    """Policy of the choice: a `record`, a `setting`, and the `budget` of candidates to measure, best by the model.

    `measure` is None where measuring is not allowed. `keep` stores a new entry in the record, in place of another, and
    returns the record as it is then. `say` receives a line for every measured group, `advance` the number of groups
    done and the total.
    """

    record: Record
    setting: Mapping[str, str]
    budget: int
    measure: Measure | None = None
    keep: Keep | None = None
    say: Callable[[str], None] = lambda _line: None
    advance: Callable[[int, int], None] = lambda _done, _total: None


class Tuner:
    """Chooses the candidates of one graph's groups; `sources` counts where choices came from."""

    def __init__(self, tuning: Tuning) -> None:
        self._tuning = tuning
        self._record = tuning.record
        self._expected = 0
        self._done = 0
        self.sources: Counter[str] = Counter()

    @property
    def most(self) -> int:
        """Number of candidates per group to offer: as many as may be measured, or as the record holds for any group."""
        recorded = (len(entry.trials) for entry in self._tuning.record.entries.values())
        return max(self._tuning.budget, *recorded, 1)

    def expect(self, groups: int) -> None:
        """Announce the number of groups still to come."""
        self._expected += groups

    def chosen(self, group: Signature, candidates: Sequence[C], plan_of: Callable[[C], Plan]) -> C:
        """The candidate to take; `candidates` begin with the model's choice, `plan_of` builds a plan of the group
        alone.

        The choice is deterministic for given candidates and record, if nothing is measured.
        """
        place = self._place(group, candidates, plan_of) if len(candidates) > 1 else 0
        self._done += 1
        self._tuning.advance(self._done, max(self._done, self._expected))
        return candidates[place]

    def _place(self, group: Signature, candidates: Sequence[C], plan_of: Callable[[C], Plan]) -> int:
        place = self._recorded(group, candidates, plan_of)
        if isinstance(place, int):
            self.sources[RECORDED] += 1
            return place
        if self._tuning.measure is None:
            self.sources[place] += 1
            return 0
        return self._measured(group, candidates[: self._tuning.budget], plan_of, place)

    def _recorded(self, group: Signature, candidates: Sequence[C], plan_of: Callable[[C], Plan]) -> int | str:
        """The place of the recorded choice among the candidates, or the reason why there is none."""
        entry = self._record.find(group.digest, self._tuning.setting)
        if isinstance(entry, str):
            return entry
        budget = min(self._tuning.budget, len(candidates))
        if self._tuning.measure is not None and len(entry.trials) < budget:
            return f"{len(entry.trials)} candidates measured, {budget} asked for"
        wanted = entry.trials[entry.chosen].decisions
        places = sorted(range(len(candidates)), key=lambda n: n != entry.chosen)
        place = next((n for n in places if decisions(plan_of(candidates[n])) == wanted), None)
        return "what it has chosen is no candidate now" if place is None else place

    def _measured(self, group: Signature, candidates: Sequence[C], plan_of: Callable[[C], Plan], why: str) -> int:
        assert self._tuning.measure is not None
        plans = [plan_of(candidate) for candidate in candidates]
        decided = [decisions(plan) for plan in plans]
        first = [decided.index(each) for each in decided]
        distinct = [n for n, place in enumerate(first) if n == place]
        seconds = dict(zip(distinct, self._tuning.measure([with_costs(plans[n]) for n in distinct]), strict=True))
        trials = tuple(_trial(decided[n], seconds[place], plans[n]) for n, place in enumerate(first))
        times = {n: trial.picoseconds for n, trial in enumerate(trials) if trial.picoseconds is not None}
        if not times:
            self.sources["no candidate could be built and run"] += 1
            self._tuning.say(f"{self._label(group)}: none of {len(distinct)} candidates could be built and run")
            return 0
        enough = min(times.values()) * (1 + MARGIN)
        best = next(n for n, time in times.items() if time <= enough)
        existing = self._record.find(group.digest, self._tuning.setting)
        entry = Entry(group, self._tuning.setting, trials, best)
        older = existing if isinstance(existing, Entry) else None
        keep: Keep = self._record.merged if self._tuning.keep is None else self._tuning.keep
        self._record = keep(entry, older)
        recorded = self._recorded(group, candidates, plan_of)
        self.sources[MEASURED] += 1
        self._tuning.say(f"{self._label(group)}: {_summary(trials, best, len(distinct))} ({why})")
        return recorded if isinstance(recorded, int) else best

    def _label(self, group: Signature) -> str:
        of = f" of {self._expected}" if self._expected else ""
        return f"group {self._done + 1}{of}, {group.operators} {', '.join(group.makes)}"


def _trial(decided: tuple[Decision, ...], seconds: float | None, plan: Plan) -> Trial:
    predicted = sum(group.cost.picoseconds for group in plan.groups)
    return Trial(decided, None if seconds is None else round(seconds * 1e12), predicted)


def _summary(trials: Sequence[Trial], best: int, distinct: int) -> str:
    """`20 candidates, 2 failed, best 118.4 us, 1.21x faster than the model's`."""
    failed = sum(trial.picoseconds is None for trial in trials)
    fastest, first = trials[best].picoseconds, trials[0].picoseconds
    text = f"{distinct} candidates" + (f", {failed} failed" if failed else "")
    text += f", best {(fastest or 0) / 1e6:.1f} us"
    if best == 0:
        return f"{text}, the model's"
    return f"{text}, {first / fastest:.2f}x faster than the model's" if first and fastest else text
