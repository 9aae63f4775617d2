"""Orders to the compiler in the background: a command, and all of the program that asks which its result depends on."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

from tilec.own_process import BLAS_THREADS, current_folder, modules_path

_VARIABLES = ("HOME", "LD_LIBRARY_PATH", "PATH", "TMPDIR", "XDG_CACHE_HOME")
"""Variables that a command has from the program that asks, beside those of tilec; others may be secrets."""


@dataclass(frozen=True)
class Order:
    """A command to be run once. `key` names its result, `result` the path that is there afterwards ("" where that is
    not known before), `what` what it is about; `given` is its standard input. It runs in `folder`, with these variables
    and on these CPUs; smaller ranks come first. It was `begun` as many times without an end.

    The command gets two more arguments: the number of the process that it is to end with, and the file of its status.
    """

    key: str
    what: str
    command: tuple[str, ...]
    given: str
    result: str
    folder: str
    environment: Mapping[str, str] = field(default_factory=dict)
    cpus: tuple[int, ...] = ()
    rank: int = 0
    begun: int = 0

    @property
    def name(self) -> str:
        """The name of its file in the queue."""
        return f"{self.rank}-{self.key[:32]}.json"

    def variables(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """The variables of its command, where others are inherited."""
        others = {
            name: value
            for name, value in inherited.items()
            if not name.startswith("TILEC_") and name not in (*_VARIABLES, "PYTHONPATH")
        }
        return {**others, **self.environment}


def order_of(key: str, what: str, module: str, given: str, result: str, rank: int) -> Order:
    """The order to run a module of this installation as this process would."""
    variables = {n: value for n, value in os.environ.items() if n.startswith("TILEC_") or n in _VARIABLES}
    variables |= dict.fromkeys(BLAS_THREADS, "1")
    cpus = tuple(sorted(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else ()
    command = (sys.executable, "-P", "-m", module)
    folder = current_folder()
    return Order(key, what, command, given, result, folder, {**variables, "PYTHONPATH": modules_path()}, cpus, rank)
