"""Plans of one product that differ in a tile, and processes that misbehave, for the tests of measuring."""

import os
import signal
import time
from dataclasses import replace
from functools import cache
from pathlib import Path

from scheduler.graphs import make_graph

from tilec.bench.candidate import Builder, Timer
from tilec.errors import UnavailableError
from tilec.ir.plan import Plan
from tilec.scheduler import schedule
from tilec.scheduler.building.subplan import subplan
from tilec.scheduler.schedule import recounted_plan
from tilec.spec.device import DeviceSpec
from tilec.spec.resolve import resolve_device

EXTENTS = {"m": 48, "n": 64, "k": 32}


@cache
def host() -> DeviceSpec:
    return resolve_device("host")


@cache
def product(rows: int) -> Plan:
    """relu(a @ w), `rows` rows a task."""
    nodes = [("c[m, n] = sum(k, a[m, k] * w[k, n])", EXTENTS), ("r[m, n] = maximum(c[m, n], 0.0)", EXTENTS)]
    whole = schedule(make_graph({"a": (48, 32)}, nodes, ["r"], {"w": (32, 64)}), host())
    (group,) = whole.groups
    (variant,) = group.variants
    core = variant.levels[1]
    tiled = replace(
        variant,
        tiles={**variant.tiles, core: {"r": {"m": rows}}},
        order={**variant.order, core: {"r": ("m",)}},
        kernel=f"rows{rows}",
    )
    group = replace(group, variants=(tiled,))
    return recounted_plan(subplan([group], group.outputs, whole.tensors, whole.levels, whole.device), None)


def rows_of(plan: Plan) -> int:
    (variant,) = plan.groups[0].variants
    return variant.tiles[variant.levels[1]]["r"]["m"]


class FaultyBuilder(Builder):
    """Dies on one row, hangs on two, raises on three."""

    def build(self, plan: Plan, folder: Path, seconds: float) -> str | None:
        match rows_of(plan):
            case 1:
                os.kill(os.getpid(), signal.SIGSEGV)
            case 2:
                time.sleep(600)
            case 3:
                raise ZeroDivisionError
        return super().build(plan, folder, seconds)


class FaultyTimer(Timer):
    """Dies on one row, hangs on two."""

    def time(self, plan: Plan, folder: Path, contest: int, seconds: float, best: float, limit: float) -> float:
        if rows_of(plan) == 1:
            os.kill(os.getpid(), signal.SIGILL)
        if rows_of(plan) == 2:
            time.sleep(600)
        return super().time(plan, folder, contest, seconds, best, limit)


class Watched(Timer):
    """Says when it began and ended instead of how long it took, as one number."""

    def time(self, plan: Plan, folder: Path, contest: int, seconds: float, best: float, limit: float) -> float:
        with (Path(folder).parents[1] / "turns").open("a") as turns:
            turns.write("begin\n")
            turns.flush()
            super().time(plan, folder, contest, seconds, best, limit)
            turns.write("end\n")
        return float(rows_of(plan))


class Homeless(Builder):
    """Finds no compiler."""

    def build(self, plan: Plan, folder: Path, seconds: float) -> str | None:
        raise UnavailableError("TVM cannot be imported")
