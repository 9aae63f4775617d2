"""`python -m tests.open_conformance`: ONNX's node cases with open sizes; prints tables, writes the results as JSON."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from tests.conformance.cases import Case, collect
from tests.conformance.judge import Result
from tests.conformance.pool import run_with
from tests.conformance.results import read_results, write_results
from tests.open_conformance.judge import judged_open
from tests.open_conformance.table import behind, by_operator, is_right

PROGRESS = 100
"""Cases after which the count is printed."""


def main() -> int:
    """Run; the exit code says whether every case is right: native, or with a reason why it is not."""
    options = _options()
    os.environ.setdefault("TILEC_THREADS", "1")
    key = "imported" if options.import_only else "open"
    before = read_results(options.output, key)
    chosen = [case for case in collect() if case.family == "node" and all(part in case.name for part in options.k)]
    if options.sample:
        chosen = sampled(chosen, options.sample)
    if options.new:
        chosen = [case for case in chosen if case.name not in before]
    if options.only_failed:
        chosen = [case for case in chosen if case.name not in before or not is_right(before[case.name])]
    found: dict[str, Result] = {}
    judge = partial(judged_open, import_only=options.import_only)
    for result in run_with(chosen, judge, options.jobs, options.timeout):
        found[result.name] = result
        write_results(options.output, {key: {**before, **found}})
        if len(found) % PROGRESS == 0:
            print(f"{len(found)} of {len(chosen)}", file=sys.stderr, flush=True)
    shown = [found[name] for name in sorted(found)]
    print(by_operator(shown), behind(shown), sep="\n\n")
    return int(not all(is_right(result) for result in shown))


def sampled(cases: Sequence[Case], count: int) -> list[Case]:
    """Up to `count` cases of each operator, spread over them; the first of every operator first."""
    of_operator: dict[str, list[Case]] = {}
    for case in cases:
        of_operator.setdefault(case.operator, []).append(case)
    spread = [[each[n * len(each) // count] for n in range(count)] for each in of_operator.values()]
    return list({each[n].name: each[n] for n in range(count) for each in spread}.values())


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.open_conformance",
        description="Compiles ONNX's node cases once, every size of their inputs open, and runs them at five sizes.",
    )
    parser.add_argument("-k", action="append", default=[], metavar="TEXT", help="only cases with this in their name")
    parser.add_argument("--import-only", action="store_true", help="count what import keeps native, run nothing")
    parser.add_argument("--sample", type=int, metavar="N", help="only N cases of each operator")
    parser.add_argument("--new", action="store_true", help="only cases without a result: go on after an interruption")
    parser.add_argument("--only-failed", action="store_true", help="only cases not native and right last time")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="worker processes")
    parser.add_argument("--timeout", type=float, default=120, metavar="SECONDS", help="for a case")
    parser.add_argument("-o", "--output", type=Path, default=Path("build/open-conformance.json"), metavar="FILE")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
