"""Runs commands one after another, each in a fork of its own with little memory; spoken to in lines of JSON.

A request is `{"folder": ..., "arguments": [...]}`; the answer has the exit code (negative: the signal that ended it),
the peak memory in bytes, the seconds, and what was said on stdout and stderr.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import pathlib
import pkgutil
import resource
import signal
import sys
import tempfile
import time
from contextlib import redirect_stderr, redirect_stdout, suppress
from typing import Any

LIMIT = 2 << 30
"""Bytes that a command may hold."""

SECONDS = 30
"""After this a command is killed."""


def run(folder: str, arguments: list[str]) -> dict[str, Any]:
    """The command `tilec ARGUMENTS` in `folder`."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        begin = time.monotonic()
        child = os.fork()
        if child == 0:
            _command(folder, arguments, out.fileno(), err.fileno())
        _, status, usage = os.wait4(child, 0)
        said = []
        for stream in (out, err):
            stream.seek(0)
            said.append(stream.read().decode(errors="replace"))
    code = os.waitstatus_to_exitcode(status)
    seconds = round(time.monotonic() - begin, 3)
    return {"code": code, "memory": usage.ru_maxrss * 1024, "seconds": seconds, "out": said[0], "err": said[1]}


def _command(folder: str, arguments: list[str], out: int, err: int) -> None:
    """The forked child; never returns."""
    code = 70
    try:
        os.chdir(folder)
        os.dup2(out, 1)
        os.dup2(err, 2)
        resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, LIMIT))
        signal.alarm(SECONDS)
        sys.argv = ["tilec", *arguments]
        try:
            from tilec.cli import app

            app.run()
            code = 0
        except SystemExit as exit_:
            code = exit_.code if isinstance(exit_.code, int) else 1
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _warm() -> None:
    """Run a command once here: what the first one of a process prepares takes most of the time of a short one."""
    from tests.safety import seeds
    from tilec.cli import app

    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), suppress(SystemExit):
        pathlib.Path("model.onnx").write_bytes(seeds.mlp().SerializeToString())
        with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
            sys.argv = ["tilec", "import", "model.onnx"]
            app.run()


OPTIONAL = "tilec.torch_backend"
"""What needs a package that need not be there, and no command imports."""

HEAVY = ("tvm", "torch")
"""What few commands import, if any: a fork of what holds them takes eight times as long."""


def main() -> None:
    """Load once all that a command may import, then serve."""
    from tilec import own_process

    own_process.begin()
    import rich.console
    import rich.table  # noqa: F401

    import tilec

    sys.modules.update(dict.fromkeys(HEAVY))  # type: ignore[arg-type]
    for module in pkgutil.walk_packages(tilec.__path__, "tilec.", onerror=lambda _name: None):
        if not module.name.endswith("__main__") and not module.name.startswith(OPTIONAL):
            with suppress(ImportError):
                importlib.import_module(module.name)
    for name in HEAVY:
        del sys.modules[name]
    _warm()
    gc.freeze()

    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(run(request["folder"], request["arguments"])), flush=True)


if __name__ == "__main__":
    main()
