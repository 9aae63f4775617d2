"""`python -m tests.conformance`: run the cases, print the tables, write the results as JSON."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.conformance.cases import Case, collect
from tests.conformance.judge import Result
from tests.conformance.pool import run_all
from tests.conformance.results import read_results, write_results
from tests.conformance.table import by_family, by_operator, by_reason

PROGRESS = 100
"""Cases after which the count is printed."""


def main() -> int:
    """Run; the exit code says whether every case that a peer passes, or else every case, passed."""
    options = _options()
    os.environ.setdefault("TILEC_THREADS", "1")
    before = read_results(options.output, "tilec")
    chosen = [case for case in collect() if all(part in case.name for part in options.k)]
    if options.only_failed:
        chosen = [case for case in chosen if case.name not in before or before[case.name].status != "passed"]
    found = _run(chosen, "tilec", options)
    peer = _run(chosen, options.against, options) if options.against else None
    record = {"tilec": {**before, **found} if options.k or options.only_failed else found}
    unlike = [result for result in found.values() if result.status != "passed"]
    if peer is not None:
        peer = record[options.against] = {**read_results(options.output, options.against), **peer}
        unlike = [result for result in unlike if peer[result.name].status == "passed"]
    shown = found if options.k else record["tilec"]
    print(by_family(shown.values(), peer), by_operator(shown.values()), by_reason(shown.values()), sep="\n\n")
    print(f"\n{len(unlike)} cases are behind")
    for result in unlike:
        print(f"  {result.name} ({result.family}): {result.status}: {result.reason}")
    write_results(options.output, record)
    return int(bool(unlike))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description="Runs onnx.backend.test.")
    parser.add_argument("-k", action="append", default=[], metavar="TEXT", help="only cases with this in their name")
    parser.add_argument("--only-failed", action="store_true", help="only cases that did not pass last time")
    parser.add_argument("--against", choices=["onnxruntime"], help="judge a peer too; only what it passes has to pass")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="worker processes")
    parser.add_argument(
        "--timeout", type=float, default=60, metavar="SECONDS", help="for a case, five times that for a network"
    )
    parser.add_argument("-o", "--output", type=Path, default=Path("build/conformance.json"), metavar="FILE")
    return parser.parse_args()


def _run(cases: Sequence[Case], backend: str, options: argparse.Namespace) -> dict[str, Result]:
    begin = time.monotonic()
    found: dict[str, Result] = {}
    for result in run_all(cases, backend, options.jobs, options.timeout):
        found[result.name] = result
        if len(found) % PROGRESS == 0:
            print(f"{backend}: {len(found)} of {len(cases)}", file=sys.stderr, flush=True)
    spent, busy = time.monotonic() - begin, sum(result.seconds for result in found.values())
    print(f"{backend}: {len(found)} cases in {spent:.0f} s, {busy / max(1, len(found)):.2f} s a case\n")
    return dict(sorted(found.items()))


if __name__ == "__main__":
    sys.exit(main())
