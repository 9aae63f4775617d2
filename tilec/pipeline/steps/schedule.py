"""The stage `schedule`: a graph, its sizes bound as far as they are known, as a plan."""

import json
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tilec.artifact import digest_file, digest_object
from tilec.errors import UnsupportedError
from tilec.pipeline.job import COPIED, DEVICE_FILE, FILES, RECIPE_FILE, Job, StageInput, StageOutput
from tilec.pipeline.pass_printer import PassPrinter
from tilec.pipeline.steps.sources import carried, refuse_illegal, sized
from tilec.pipeline.tuning import record_digests, record_place, told, tuner_of
from tilec.progress import Advance

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tilec.ir.plan import Group, Plan, Variant
    from tilec.ir.program import Program
    from tilec.scheduler.building.code_decisions import Decide
    from tilec.scheduler.plan_candidates import PlanState
    from tilec.spec.recipe import CompileRecipe


LONG = 10.0
"""Seconds of a search after which it is told what less effort would come to."""


def plan_inputs(job: Job, source: StageInput) -> dict[str, str]:
    """Digests that decide whether a plan is fresh; the graph counts with its sizes bound."""
    assert job.device is not None
    return {
        **carried(source, "model"),
        "graph": digest_object(source.body),
        "device": job.device.digest(),
        "recipe": job.recipe.digest("schedule"),
        **record_digests(job),
    }


def bind_sizes(job: Job, source: StageInput) -> StageInput:
    """A graph with the job's sizes and ranges: what `schedule` reads, however they were given.

    Raises UsageError for a symbol that a flag names and the graph does not have.
    """
    assert source.artifact is not None
    symbols = {*source.body.get("symbols", ()), *source.body.get("symbol_values", ())}
    if job.recipe.scenarios is None and not (symbols | job.asked) & (job.shapes.keys() | job.ranges.keys()):
        return source
    from tilec.ir.codec import graph_from_json, graph_to_json

    graph = sized(graph_from_json(source.body, source.place), job)
    return replace(source, artifact=replace(source.artifact, body=graph_to_json(graph)))


def schedule_graph(job: Job, source: StageInput, target: Path, advance: Advance) -> StageOutput:
    """Plan a graph for the job's device."""
    from tilec.ir.codec import graph_from_json, plan_to_json
    from tilec.ir.verify.graph import check_graph
    from tilec.pipeline.code_decisions import announce_for, begin_compiler, decide_for
    from tilec.pipeline.kept_searches import keep_search, kept_search
    from tilec.pipeline.search_progress import SearchProgress
    from tilec.scheduler.schedule import plan_with_code, search_plan
    from tilec.scheduler.trace import NO_TRACE

    assert job.device is not None
    begin_compiler(job)
    graph = graph_from_json(source.body, source.place)
    refuse_illegal("graph", check_graph(graph), source)
    advance(1, 1, "check graph")
    files = _files_beside(job, target)
    printer = PassPrinter(job.listener.note) if job.recipe.schedule.print_between_passes else None
    if printer is not None:
        printer("import", graph)
    with tuner_of(job, graph, target, advance) as tuner:
        trace = SearchProgress(printer or NO_TRACE, advance)
        begin = time.monotonic()
        state = search_plan(graph, job.device, job.recipe.schedule, trace, tuner, partial(kept_search, job))
        if time.monotonic() - begin > LONG and (words := quick_instead(state)):
            job.listener.note(words)
        decide, announce = _told(decide_for(job.device), advance), announce_for(job)
        plan = plan_with_code(state, decide, partial(trace.advance, "lower"), announce=announce)
    keep_search(job, state)
    plan = _with_bounds(plan, job)
    if tuner is None:
        return StageOutput(plan_to_json(plan), files)
    job.listener.note(told(tuner))
    return StageOutput(plan_to_json(plan), files, {"record": digest_file(record_place(job, target))})


def quick_instead(state: "PlanState") -> str:
    """Words about the plan that little effort would have made; empty where that would be the same."""
    quick, taken = state.quick, state.taken
    if quick is None or quick is taken or taken.counts_bytes or not taken.cost:
        return ""
    ratio = quick.lower_bound / taken.cost
    said = f"predicted at least {ratio:.2f} times as slow"
    return f"schedule: a plan by rules, --effort quick, takes a fraction of the time; {said}"


def _told(decide: "Decide | None", advance: Advance) -> "Decide | None":
    """The rules of a back end, which show that they decide."""
    if decide is None:
        return None

    def shown(plan: "Plan", groups: "Sequence[Group]", program: "Program") -> "tuple[Variant, object]":
        decided = decide(plan, groups, program)
        advance(0, 0, "decide code")
        return decided

    return shown


def _files_beside(job: Job, target: Path) -> dict[str, list[bytes]]:
    """Device and recipe for readers of the plan; files of the user keep their place."""
    texts = {DEVICE_FILE: job.device_text} if job.device_text else {}
    if target.name == FILES["plan"]:
        texts[RECIPE_FILE] = _recipe_text(job.recipe)
    return {
        name: [text.encode()]
        for name, text in texts.items()
        if not text.startswith(COPIED) or (target.name == FILES["plan"] and _is_replaceable(target.parent / name))
    }


def _is_replaceable(path: Path) -> bool:
    """Whether there is no file yet, or one that was written for an earlier plan."""
    try:
        with path.open("rb") as file:
            return file.read(len(COPIED)) == COPIED.encode()
    except FileNotFoundError:
        return True
    except OSError:
        return False


def _recipe_text(recipe: "CompileRecipe") -> str:
    """The sections that decide a plan, without what depends on the machine or prints."""
    given = recipe.model_dump(mode="json", include={"shapes": True, "schedule": True})
    for key in ("profile", "record", "print_between_passes"):
        given["schedule"].pop(key)
    return COPIED + "kind: compile\n" + "".join(f"{key}: {json.dumps(value)}\n" for key, value in given.items())


def _with_bounds(plan: "Plan", job: Job) -> "Plan":
    """The plan with its bounds; without them, and a note, where they cannot be counted."""
    from tilec.pipeline.plan_bounds import plan_with_bounds

    assert job.device is not None
    try:
        return plan_with_bounds(plan, job.device, job.recipe.schedule.bounds)
    except UnsupportedError as error:
        job.listener.note(f"bounds: none, {error.message}")
        return plan
