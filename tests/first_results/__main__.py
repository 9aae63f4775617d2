"""`python -m tests.first_results [MODEL...] [--times N] [--compiled]`: first results of programs, beside onnxruntime's.

A model is a file or a name of the zoo. Prints a table in Markdown: seconds and processor seconds of a program that
opens a session and runs it once, the median of N, and ratios to onnxruntime's, which runs in turns with the others:
`first` has nothing cached but what was measured of this machine, `again` knows the model, which is not compiled yet,
`compiled` finds it compiled. No compiler works at the same time: this process holds the queue of the cache.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from docs.provenance import commit_now
from tests.first_results.runs import Took, fresh_cache
from tilec.artifact import SETTLED, tools
from tilec.background import Queue
from tilec.spec.probe import probed_text
from tilec.zoo import export

MODELS = ("mobilenet-v2", "bert-base", "conformer")
PROGRAM = Path(__file__).with_name("program.py")


def main(arguments: list[str]) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.first_results")
    parser.add_argument("models", nargs="*", default=MODELS, metavar="MODEL")
    parser.add_argument("--times", type=int, default=7)
    parser.add_argument("--compiled", action="store_true", help="compile it, and measure that too")
    chosen = parser.parse_args(arguments)
    probed_text()
    tools()
    states = ("first", "again", *(("compiled",) if chosen.compiled else ()))
    print(f"| model | onnxruntime s (CPU) | {' | '.join(f'{state} s (CPU), ratio' for state in states)} | commit |")
    print(f"|{' --- |' * (3 + len(states))}", flush=True)
    with tempfile.TemporaryDirectory(prefix="tilec-first-") as folder:
        for name in chosen.models:
            model = Path(name) if Path(name).exists() else export(name, Path(folder) / f"{name}.onnx")
            time.sleep(SETTLED)  # a digest of what was written a moment ago is not remembered
            print(_row(model, Path(folder), states, chosen.times), flush=True)


def _row(model: Path, folder: Path, states: tuple[str, ...], times: int) -> str:
    measured: dict[str, list[Took]] = {"onnxruntime": [], **{state: [] for state in states}}
    compiled = fresh_cache(folder / "compiled" / model.stem)
    if "compiled" in states:
        run(model, "tilec", compiled, TILEC_WHILE_COMPILING="wait")
    run(model, "onnxruntime", folder)  # its file is in memory from now on
    for number in range(times):
        cache = fresh_cache(folder / model.stem / str(number))
        measured["onnxruntime"].append(run(model, "onnxruntime", cache))
        with Queue(cache / "tilec").held():
            measured["first"].append(run(model, "tilec", cache))
            _identified(cache)
            measured["again"].append(run(model, "tilec", cache))
        if "compiled" in states:
            measured["compiled"].append(run(model, "tilec", compiled))
    least = {name: _median(took) for name, took in measured.items()}
    base = least.pop("onnxruntime")
    cells = [f"{t.wall:.2f} ({t.cpu:.2f}), {t.wall / base.wall:.2f}" for t in least.values()]
    return f"| {model.stem} | {base.wall:.2f} ({base.cpu:.2f}) | {' | '.join(cells)} | {commit_now()} |"


def _median(took: list[Took]) -> Took:
    return Took(statistics.median(each.wall for each in took), statistics.median(each.cpu for each in took))


def run(model: Path, package: str, cache: Path, **more: str) -> Took:
    """Run the program once. Raises CalledProcessError."""
    variables = {**os.environ, "XDG_CACHE_HOME": str(cache), "TILEC_WHILE_COMPILING": "fallback", **more}
    command = [sys.executable, str(PROGRAM), package, str(model)]
    began = time.perf_counter()
    child = subprocess.Popen(command, env=variables)
    _, status, used = os.wait4(child.pid, 0)
    took = Took(time.perf_counter() - began, used.ru_utime + used.ru_stime)
    if status:
        raise subprocess.CalledProcessError(status, command)
    return took


def _identified(cache: Path) -> None:
    """Wait until somebody has read the whole model."""
    end = time.monotonic() + 60
    while not list((cache / "tilec").glob("queue/*/*-*.json")) and time.monotonic() < end:
        time.sleep(0.05)


if __name__ == "__main__":
    main(sys.argv[1:])
