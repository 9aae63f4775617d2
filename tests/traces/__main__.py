"""`python -m tests.traces [MODEL...]`: models with open sizes on sizes that were never compiled for, beside peers."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.traces.compiling import compiled
from tests.traces.feeds import interface_of
from tests.traces.figures import figures
from tests.traces.report import Result, as_json, head, line
from tests.traces.runtimes import OURS, PEERS, Load, Tilec
from tests.traces.static import against_static, spread_over
from tests.traces.trace import TRACES, Trace
from tests.traces.turns import measured
from tilec import zoo
from tilec.artifact import write_bytes
from tilec.errors import TilecError

HELP = """\
Each model is compiled once, for ranges of sizes, with nothing cached but the measured device; the processor seconds of
that, and of a compilation for the pivot sizes alone, are reported. Then a trace of sizes, drawn once from a long-tailed
distribution, runs through tilec, onnxruntime and OpenVINO in turns, each in a warm process of its own with so many
threads, each told the same ranges. Every call is made twice in a row, after one of the least sizes: the trace is the
first ones, `again` are the second ones. Results are compared with onnxruntime's at every new size.

A line of a Markdown table on stdout as each model is done, progress on stderr, everything in the JSON file, which is
written after each model; Ctrl-C keeps those that are done.

To take the figures of docs/benchmarks.md on an idle machine (`uptime` below 0.3; about 25 minutes on two cores):

  pip install '.[bench]'
  tilec device probe
  make traces ARGS="--static 4" > traces.md
"""


def main(arguments: list[str]) -> int:
    """Returns 1 where a model failed, 130 after Ctrl-C."""
    parser = argparse.ArgumentParser(
        "tests.traces", description=HELP, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"default: {' '.join(TRACES)}")
    parser.add_argument("--calls", type=int, help="calls of a trace (default: 30, gpt2 15)")
    parser.add_argument("--threads", type=int, default=2, help="of each runtime (default: 2)")
    parser.add_argument("--seed", type=int, default=0, help="of the sizes (default: 0)")
    parser.add_argument("--form", choices=("fused", "decomposed"), default="fused", help="of the models")
    parser.add_argument("--static", type=int, default=0, metavar="K", help="compile K of the sizes alone too, compare")
    parser.add_argument("--json", type=Path, default=Path("build/traces.json"), help="default: build/traces.json")
    asked = parser.parse_args(arguments)
    if unknown := [name for name in asked.models if name not in TRACES]:
        parser.error(f"no trace of {', '.join(unknown)}; there are {', '.join(TRACES)}")
    return traced([TRACES[name] for name in asked.models or TRACES], asked)


def traced(traces: list[Trace], asked: argparse.Namespace) -> int:
    """Measure the traces one after another and report each when it is done."""
    done, failed = [], 0
    print(head(), flush=True)
    for trace in traces:
        try:
            result = of_model(trace, asked, PEERS)
        except TilecError as error:
            failed = 1
            say(f"{trace.model}: {error}", end="\n")
            continue
        except KeyboardInterrupt:
            say(f"{trace.model}: interrupted", end="\n")
            return 130
        done.append(as_json(result))
        print(line(result), flush=True)
        asked.json.parent.mkdir(parents=True, exist_ok=True)
        body = {"machine": platform.platform(), "threads": asked.threads, "seed": asked.seed, "models": done}
        write_bytes(asked.json, json.dumps(body, indent=1).encode())
    return failed


def of_model(trace: Trace, asked: argparse.Namespace, peers: Mapping[str, Load]) -> Result:
    """Export, compile and measure one model of the zoo."""
    with TemporaryDirectory(prefix="tilec-traces-") as scratch:
        model = zoo.export(trace.model, Path(scratch) / f"{trace.model}.onnx", form=asked.form, dynamic=True)
        return of_file(model, trace, asked, peers)


def of_file(model: Path, trace: Trace, asked: argparse.Namespace, peers: Mapping[str, Load]) -> Result:
    """Compile and measure one model; what is made lies beside it."""
    calls = trace.drawn(asked.seed)[: asked.calls]
    interface = interface_of(model)
    folder = model.parent / "every"
    say(f"{trace.model}: compile for all sizes")
    every = compiled(model, folder, trace.flags)
    say(f"{trace.model}: compile for {', '.join(f'{s}={n}' for s, n in trace.pivot.items())}")
    pivot = compiled(model, model.parent / "pivot", trace.pivot)
    runtimes = {OURS: (Tilec, folder), **{name: (load, model) for name, load in peers.items()}}
    found = measured(runtimes, trace, calls, interface, asked.threads, model.parent / "results", counter(trace, "call"))
    chosen = spread_over(calls, asked.static)
    static = against_static(model, folder, trace, chosen, interface, counter(trace, "static model"))
    say("")
    return Result(trace, found, figures(found), every, pivot, static)


def counter(trace: Trace, what: str) -> Callable[[int, int], None]:
    """Says how many are done."""
    return lambda done, total: say(f"{trace.model}: {what} {done} of {total}")


def say(text: str, end: str = "") -> None:
    """Progress on stderr: one line that changes on a terminal, else a line each."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end=end, file=sys.stderr, flush=True)
    elif text:
        print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
