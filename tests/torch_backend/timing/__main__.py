"""`python -m tests.torch_backend.timing [MODULE...]`: modules through tilec, inductor and OpenVINO in turns."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from statistics import geometric_mean, median
from tempfile import TemporaryDirectory

from tests.torch_backend.models import CASES
from tests.torch_backend.timing import costs
from tests.torch_backend.timing.cases import QUANTISED
from tests.torch_backend.timing.cost import COSTS
from tests.torch_backend.timing.timed import Made, Timed
from tests.torch_models.environment import interpreter
from tilec.artifact import write_bytes
from tilec.bench.compare import PAUSE
from tilec.bench.priority import precedence
from tilec.errors import TilecError
from tilec.verify.remote import Remote

HELP = """\
Each module is compiled by each backend for inputs of one size, with nothing cached, in a process of its backend. Its
results are compared with PyTorch's in float64. Then the backends take turns: a round is the median of calls that take
about so many seconds together, the figure is the median of the rounds. `ratio` is the time of the faster peer over
tilec's. Columns with several figures are those of tilec and the peers, in this order.

  make torch-timing > torch.md
"""

OURS = "tilec"
PEERS = ("inductor", "openvino")
COLUMNS = ("module", "call, us", "ratio", "first call, s", "error")


@dataclass(frozen=True, slots=True)
class Result:
    """A module: what compiling it gave and the seconds of its rounds, by backend."""

    module: str
    made: Mapping[str, Made]
    rounds: Mapping[str, Sequence[float]]

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds of a call, by backend; of those that compile it."""
        return {name: median(rounds) for name, rounds in self.rounds.items()}

    @property
    def ratio(self) -> float | None:
        """Time of the faster peer whose results are right over ours; None without one of them."""
        right = {name: each for name, each in self.seconds.items() if self.made[name].right}
        peers = [right[name] for name in PEERS if name in right]
        return min(peers) / right[OURS] if peers and OURS in right else None


def main(arguments: list[str]) -> int:
    """Returns 1 where a module fails in tilec or its results are wrong."""
    parser = argparse.ArgumentParser(
        "tests.torch_backend.timing", description=HELP, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("modules", nargs="*", metavar="MODULE", help=f"default: {', '.join(CASES)}")
    parser.add_argument("--size", type=int, default=12, help="of the dimension that varies (default: 12)")
    parser.add_argument("--threads", type=int, default=2, help="of each backend (default: 2)")
    parser.add_argument("--rounds", type=int, default=5, help="of each module and backend (default: 5)")
    parser.add_argument("--seconds", type=float, default=0.05, help="of a round (default: 0.05)")
    parser.add_argument("--peers", nargs="*", default=PEERS, choices=PEERS, help=f"default: {' '.join(PEERS)}")
    parser.add_argument("--quantised", action="store_true", help="modules with weights of torchao beside its kernels")
    parser.add_argument("--costs", action="store_true", help="first calls, compilations and memory beside inductor's")
    parser.add_argument("--json", type=Path, help="write everything there")
    asked = parser.parse_args(arguments)
    listed = list(QUANTISED if asked.quantised else COSTS if asked.costs else CASES)
    if unknown := [name for name in asked.modules if name not in listed]:
        parser.error(f"no module {', '.join(unknown)}; there are {', '.join(listed)}")
    if asked.quantised and not find_spec("torchao"):
        python = str(interpreter())
        os.execv(python, [python, "-m", "tests.torch_backend.timing", *arguments])
    if asked.costs:
        return costs.main(asked)
    done = []
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
    with TemporaryDirectory(prefix="tilec-torch-") as scratch, ExitStack() as stack:
        backends = {
            name: stack.enter_context(Remote(name, Timed, name, asked.threads, Path(scratch) / name))
            for name in (OURS, *asked.peers)
        }
        for backend in backends.values():
            backend.ready()
            backend.call("compile", "no parameters", 3)  # the compilers themselves are started
        for name in asked.modules or listed:
            done.append(compared(backends, name, asked))
            print(line(done[-1]), flush=True)
    ratios = [result.ratio for result in done if result.ratio]
    if ratios:
        below = ", ".join(f"{result.module} {result.ratio:.2f}" for result in done if (result.ratio or 1) < 0.9)
        print(f"\n{len(ratios)} modules: geometric mean {geometric_mean(ratios):.2f}; below 0.9: {below or 'none'}")
    if asked.json:
        body = {"machine": platform.platform(), "threads": asked.threads, "modules": [asdict(each) for each in done]}
        write_bytes(asked.json, json.dumps(body, indent=1).encode())
    return int(not all(each.made[OURS].right for each in done))


def compared(backends: Mapping[str, Remote], name: str, asked: argparse.Namespace) -> Result:
    """Compile a module by all backends and time those that could."""
    made = {backend: remote.call("compile", name, asked.size) for backend, remote in backends.items()}
    running = {backend: backends[backend] for backend in backends if not made[backend].trouble}
    rounds: dict[str, list[float]] = {backend: [] for backend in running}
    with precedence():
        runs = {backend: _turn(remote, "calibrate", asked.seconds) for backend, remote in running.items()}
        for _ in range(asked.rounds):
            for backend, remote in running.items():
                rounds[backend].append(_turn(remote, "round", runs[backend]))
    return Result(name, made, rounds)


def _turn(remote: Remote, method: str, argument: float) -> float:
    time.sleep(PAUSE)  # the threads of the previous one stop spinning
    answer: float = remote.call(method, argument)
    return answer


def line(result: Result) -> str:
    """A module's line of the table."""
    seconds, ratio = result.seconds, result.ratio
    made = {name: each for name, each in result.made.items() if not each.trouble}

    def each(texts: Mapping[str, str]) -> str:
        return ", ".join(texts.get(name, "-") for name in result.made)

    cells = (
        result.module,
        each({name: f"{1e6 * time:.0f}" for name, time in seconds.items()}),
        "" if ratio is None else f"{ratio:.2f}",
        each({name: f"{its.seconds:.1f}" for name, its in made.items()}),
        each({name: f"{its.error:.0e}" for name, its in made.items()}),
    )
    troubles = "".join(f"\n\n{name}: {its.trouble}\n" for name, its in result.made.items() if its.trouble)
    return f"| {' | '.join(cells)} |{troubles}"


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except TilecError as error:
        sys.exit(str(error))
