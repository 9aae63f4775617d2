"""Processor seconds of first calls, compilations and memory of modules through tilec, beside inductor."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import asdict
from statistics import geometric_mean

from tests.cpu_limit import run_limited
from tests.torch_backend.models import CASES
from tests.torch_backend.timing.cost import COSTS, LARGE, SIZES, Cost
from tilec.artifact import write_bytes

BACKENDS = ("tilec", "inductor")

LIMIT = 300.0
"""Processor seconds of a process."""

COLUMNS = ("module", "first call, CPU s", "of inductor's", f"compiled for {', '.join(map(str, SIZES))}", "memory")


def main(asked: Namespace) -> int:
    """Returns 1 where a module fails."""
    done: dict[str, Mapping[str, Cost | str]] = {}
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
    for name in asked.modules or COSTS:
        done[name] = {backend: _cost(name, backend, asked.threads) for backend in BACKENDS}
        print(line(name, done[name]), flush=True)
    ratios = [ratio for name, each in done.items() if name in CASES and (ratio := _ratio(each))]
    if ratios:
        print(f"\nCPU seconds of inductor's: {geometric_mean(ratios):.2f} in geometric mean, at most {max(ratios):.2f}")
    if asked.json:
        body = {
            name: {backend: asdict(cost) for backend, cost in each.items() if isinstance(cost, Cost)}
            for name, each in done.items()
        }
        write_bytes(asked.json, json.dumps(body, indent=1).encode())
    return int(any(isinstance(each["tilec"], str) for each in done.values()))


def _cost(name: str, backend: str, threads: int) -> Cost | str:
    """What a module costs in a process of its own; else what the process said last."""
    done = run_limited([sys.executable, "-m", "tests.torch_backend.timing.cost", name, backend, str(threads)], LIMIT)
    if done.code:
        return done.ended or (done.errors.strip().splitlines() or [f"exit code {done.code}"])[-1]
    return Cost(**json.loads(done.output.strip().splitlines()[-1]))


def line(name: str, costs: Mapping[str, Cost | str]) -> str:
    """A module's line of the table; memory that has grown is in multiples of the weights."""
    made = {backend: cost for backend, cost in costs.items() if isinstance(cost, Cost)}
    ratio = _ratio(costs) if name in CASES else None
    cells = (
        name,
        ", ".join(f"{made[each].seconds:.1f}" if each in made else "-" for each in costs) if name in CASES else "",
        "" if ratio is None else f"{ratio:.2f}",
        ", ".join(f"{made[each].compilations}" if each in made else "-" for each in costs),
        ", ".join(f"{cost.grown / cost.weights:.2f}" for cost in made.values()) if name in LARGE else "",
    )
    troubles = "".join(f"\n\n{backend}: {cost}\n" for backend, cost in costs.items() if isinstance(cost, str))
    return f"| {' | '.join(cells)} |{troubles}"


def _ratio(costs: Mapping[str, Cost | str]) -> float | None:
    """Processor seconds of tilec's first call over those of inductor's."""
    ours, theirs = (costs[backend] for backend in BACKENDS)
    return ours.seconds / theirs.seconds if isinstance(ours, Cost) and isinstance(theirs, Cost) else None
