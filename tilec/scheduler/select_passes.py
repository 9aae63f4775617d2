"""Which graph passes and search steps run: all, or those that a recipe names in `schedule.passes`."""

from __future__ import annotations

from collections.abc import Sequence

from tilec.errors import ConfigError, did_you_mean
from tilec.scheduler import pipeline
from tilec.scheduler.pipeline import AnyPass
from tilec.scheduler.plan_candidates import PlanStep
from tilec.scheduler.shared_launches import ShareLaunches
from tilec.scheduler.state import SearchStep
from tilec.spec.recipe import ScheduleOptions

PLACE = "schedule.passes"


def graph_passes(options: ScheduleOptions) -> tuple[AnyPass, ...]:
    """The graph passes that run: those named, in that order; without names all that this way to fuse can use.

    Names of search steps alone leave the graph passes as they are.  Raises ConfigError for a name that is in neither
    list.
    """
    _require_known(options.passes or ())
    passes: dict[str, AnyPass] = {each.name: each for each in pipeline.GRAPH_PASSES}
    named = [name for name in options.passes or () if name in passes]
    if options.passes is None or (options.passes and not named):
        return tuple(each for each in passes.values() if not each.without or options.fusion != "none")
    order = list(passes)
    for name in (each.name for each in pipeline.GRAPH_PASSES if each.always and each.name not in named):
        named.insert(sum(order.index(other) < order.index(name) for other in named), name)
    return tuple(passes[name] for name in named)


def search_steps(options: ScheduleOptions) -> tuple[tuple[SearchStep, ...], tuple[PlanStep, ...]]:
    """The steps of the search that run, for groups and for whole plans, in the order of the list; all of them where no
    name is one of a step.

    Raises ConfigError for a name that is in neither list, and where a step is left out without which there is no plan.
    """
    _require_known(options.passes or ())
    steps = _chosen_steps(options)
    return (
        tuple(step for step in steps if isinstance(step, SearchStep)),
        tuple(step for step in steps if isinstance(step, PlanStep)),
    )


def launch_steps(options: ScheduleOptions) -> tuple[ShareLaunches, ...]:
    """The steps over the plan that is taken; one without fusion is left as it is, to be compared with."""
    if options.fusion == "none":
        return ()
    return tuple(step for step in _chosen_steps(options) if isinstance(step, ShareLaunches))


def _chosen_steps(options: ScheduleOptions) -> Sequence[SearchStep | PlanStep | ShareLaunches]:
    """All steps of the search, or those that a recipe names. Raises ConfigError where one is missing without which
    there is no plan."""
    steps: Sequence[SearchStep | PlanStep | ShareLaunches] = pipeline.SEARCH
    names = {step.name for step in steps}.intersection(options.passes or ())
    if names:
        for step in steps:
            if step.required and step.name not in names:
                raise ConfigError(
                    f"the search cannot do without {step.name}: {step.required}",
                    PLACE,
                    f"Name it too, or no step of the search; those that can be left out are {_optional(steps)}.",
                )
        steps = [step for step in steps if step.name in names]
    return steps


def _optional(steps: Sequence[SearchStep | PlanStep | ShareLaunches]) -> str:
    return ", ".join(step.name for step in steps if not step.required)


def _require_known(names: Sequence[str]) -> None:
    known = [each.name for each in (*pipeline.GRAPH_PASSES, *pipeline.SEARCH)]
    for name in names:
        if name not in known:
            near = did_you_mean(name, known)
            raise ConfigError(
                f"no pass of schedule is called {name!r}",
                PLACE,
                f"Did you mean {near!r}?" if near else f"The passes are {', '.join(known)}.",
            )
