"""`tilec.as_onnxruntime()`: programs that import onnxruntime get tilec from then on.

`python -m tilec.as_onnxruntime SCRIPT [ARGUMENTS]` and `python -m tilec.as_onnxruntime -m MODULE [ARGUMENTS]` do the
same for a program as it is.
"""

import runpy
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType

from tilec.api.stand_in import stand_in
from tilec.errors import UsageError

USAGE = "python -m tilec.as_onnxruntime (SCRIPT | -m MODULE) [ARGUMENTS]"


def program(arguments: Sequence[str]) -> Callable[[], object]:
    """What runs the script or module of a command line as `python` does. Raises UsageError."""
    match arguments:
        case ["-m", name, *_]:
            argv, folder = list(arguments[1:]), Path.cwd()
            run = partial(runpy.run_module, name, run_name="__main__", alter_sys=True)
        case [script, *_] if not script.startswith("-"):
            if not Path(script).exists():
                raise UsageError("there is no such script", script, f"Usage: {USAGE}")
            argv, folder = list(arguments), Path(script).resolve().parent
            run = partial(runpy.run_path, script, run_name="__main__")
        case _:
            raise UsageError("no program to run", hint=f"Usage: {USAGE}")

    def started() -> None:
        stand_in()
        sys.argv, sys.path[0] = argv, str(folder)
        run()

    return started


class _Callable(ModuleType):
    """This module, which `tilec.as_onnxruntime()` calls."""

    def __call__(self) -> ModuleType:
        return stand_in()


if __name__ == "__main__":
    try:
        start = program(sys.argv[1:])
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    start()
else:
    sys.modules[__name__].__class__ = _Callable
