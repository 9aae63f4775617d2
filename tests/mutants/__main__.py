"""`python -m tests.mutants [NAME ...]`: plant the faults of the list one by one; 1 unless tests find every one."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from tempfile import TemporaryDirectory

from tests.mutants.mutant import Mutant, load
from tests.mutants.runner import LIMIT, Outcome, copy_checkout, run_tests, try_mutant

ROOT = Path(__file__).parents[2]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; the exit code says whether the tests find every mutant that was asked for."""
    options = _options(arguments)
    known = {mutant.name: mutant for mutant in load()}
    unknown = [name for name in options.names if name not in known]
    if unknown:
        print(f"no mutant is called {unknown[0]!r}; --list names them", file=sys.stderr)
        return 2
    mutants = [known[name] for name in options.names or known]
    if options.list:
        for mutant in mutants:
            print(f"{mutant.name}: {mutant.fault} ({mutant.file})")
        return 0
    begin = time.monotonic()
    with TemporaryDirectory(prefix="mutants-") as folder:
        first = copy_checkout(ROOT, Path(folder) / "0")
        if not _sound(first, mutants, options.jobs):
            return 1
        copies = [first, *(copy_checkout(first, Path(folder) / str(n)) for n in range(1, options.jobs))]
        outcomes = _tried(mutants, copies)
    print(_table(outcomes))
    killed = sum(outcome.status == "killed" for outcome in outcomes)
    print(f"{killed} of {len(mutants)} mutants killed in {time.monotonic() - begin:.0f} s")
    return 0 if killed == len(mutants) else 1


def _tried(mutants: Sequence[Mutant], copies: Sequence[Path]) -> list[Outcome]:
    """What became of every mutant, one at a time in each copy of the checkout; prints a line for each."""
    idle: Queue[Path] = Queue()
    for copy in copies:
        idle.put(copy)

    def tried(mutant: Mutant) -> Outcome:
        copy = idle.get()
        try:
            outcome = try_mutant(mutant, copy)
        finally:
            idle.put(copy)
        print(f"{outcome.status:<8}  {mutant.name}", flush=True)
        return outcome

    with ThreadPoolExecutor(len(copies)) as pool:
        return list(pool.map(tried, mutants))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="mutants to plant (default: all)")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="mutants at a time (default: %(default)s)"
    )
    parser.add_argument("--list", action="store_true", help="print the mutants, run none")
    return parser.parse_args(arguments)


def _sound(checkout: Path, mutants: Sequence[Mutant], jobs: int) -> bool:
    """Whether the tests pass without any fault: else they would seem to find all of them."""
    tests = sorted({test for mutant in mutants for test in mutant.tests})
    limit = LIMIT * len({test.partition("::")[0] for test in tests})
    code, output = run_tests(checkout, tests, "-n", str(jobs), limit=limit)
    if code is None:
        print(f"the tests of the mutants take longer than {limit} s without any fault", file=sys.stderr)
    elif code != 0:
        print(f"{output[-4000:]}\nthe tests of the mutants fail without any fault", file=sys.stderr)
    return code == 0


def _table(outcomes: Sequence[Outcome]) -> str:
    width = max(len(outcome.mutant.name) for outcome in outcomes)
    return "\n".join(
        f"{each.status:<8}  {each.seconds:5.1f} s  {each.mutant.name:<{width}}  {each.detail.strip()}"
        for each in outcomes
    )


if __name__ == "__main__":
    sys.exit(main())
