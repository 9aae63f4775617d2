"""A folder with a small model, a cache, a home and temporary files of its own, and commands that run there."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tilec.artifact import read_artifact, write_text
from tilec.errors import TilecError
from tilec.pipeline.job import FILES, RUN_FILE, read_run
from tilec.runtime import load
from tilec.spec.host import read_host
from tilec.spec.probe import cache_folder, probed_text

SHIM = Path(__file__).parent / "shim"
SOURCES = Path(__file__).parents[2]
MARK = "TILEC_FAULTS"
FEED = {"x": np.linspace(-1, 1, 4 * 128, dtype=np.float32).reshape(4, 128)}

SESSION = """
import sys, numpy as np, tilec
feed = np.linspace(-1, 1, 4 * 128, dtype=np.float32).reshape(4, 128)
np.save(sys.argv[2], tilec.InferenceSession(sys.argv[1]).run(None, {"x": feed})[0])
"""
"""A session through the cache, which writes its output."""


@dataclass(frozen=True)
class Ended:
    """A command that ended: exit code (negative: a signal) and its two streams."""

    code: int
    out: str
    err: str

    @property
    def problem(self) -> str:
        """The streams' end, for a message."""
        return f"exit {self.code}: {(self.err or self.out).strip()[-400:]}"


class World:
    """One folder: `model.onnx` of a version, its build `model.tilec`, `cache/` in which this machine was measured,
    `home/` and `tmp/`; `user` runs its commands on `python`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.model = root / "model.onnx"
        self.build = root / "model.tilec"
        self.cache = root / "cache"
        for name in ("cache", "home", "tmp"):
            (root / name).mkdir(parents=True, exist_ok=True)
        device = cache_folder({"XDG_CACHE_HOME": str(self.cache)}) / f"host-{read_host().key}.yaml"
        write_text(device, probed_text())
        self.mark = f"{os.getpid()}-{root.name}"
        self.runs = 0
        self.user: int | None = None
        self.python = sys.executable

    def environment(self, **more: str) -> dict[str, str]:
        """Variables of every command; MARK finds processes that are left."""
        return {
            **os.environ,
            "PYTHONPATH": os.pathsep.join((str(SHIM), str(SOURCES), *self._packages())),
            "HOME": str(self.root / "home"),
            "TMPDIR": str(self.root / "tmp"),
            "XDG_CACHE_HOME": str(self.cache),
            "TILEC_WHILE_COMPILING": "wait",
            MARK: self.mark,
            **more,
        }

    def _packages(self) -> tuple[str, ...]:
        """Where another Python finds the packages of this one."""
        return () if self.python == sys.executable else (sysconfig.get_path("purelib"),)

    def write_model(self, version: int) -> None:
        """Replace the model by one of the same shapes with the weights of this version."""
        aside = self.model.with_suffix(".new")
        aside.write_bytes(model_bytes(version))
        os.replace(aside, self.model)

    def start(self, *arguments: str, program: str | None = None, **more: str) -> subprocess.Popen[str]:
        """Start `tilec ARGUMENTS`, or a Python `program`, as the leader of a process group."""
        self.runs += 1
        command = [self.python, "-m", "tilec"] if program is None else [self.python, "-c", program]
        return subprocess.Popen(
            [*command, *arguments],
            cwd=self.root,
            env=self.environment(**more),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            user=self.user,
            group=self.user,
            extra_groups=None if self.user is None else [],
        )

    def run(self, *arguments: str, program: str | None = None, **more: str) -> Ended:
        """Run it to its end."""
        return ended(self.start(*arguments, program=program, **more))

    def compile(self, *arguments: str, **more: str) -> Ended:
        """Run `tilec compile` of the model for this machine."""
        return self.run(*COMPILE, *arguments, **more)

    def orphans(self) -> list[int]:
        """Processes of this world that still live five seconds from now at the latest; ends them."""
        limit = time.monotonic() + 5
        while (left := list(self._living())) and time.monotonic() < limit:
            time.sleep(0.05)
        for process in left:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        return left

    def living(self) -> Iterator[tuple[int, str]]:
        """The processes of this world, with their command lines."""
        for process in self._living():
            with suppress(OSError):
                yield process, Path(f"/proc/{process}/cmdline").read_text().replace("\0", " ")

    def _living(self) -> Iterator[int]:
        wanted = f"{MARK}={self.mark}\0".encode()
        for entry in Path("/proc").glob("[0-9]*/environ"):
            with suppress(OSError):
                if wanted in entry.read_bytes():
                    yield int(entry.parent.name)

    def leftovers(self) -> list[str]:
        """Temporary files and folders that no command removed."""
        aside = [path for path in self.root.rglob("*") if path.name.endswith((".tmp", ".old", ".shared"))]
        return sorted(str(path.relative_to(self.root)) for path in (*aside, *(self.root / "tmp").glob("[!.]*")))


def python_for_all() -> str | None:
    """A Python of this version that other users may run; None where there is none."""
    found = shutil.which(f"python3.{sys.version_info.minor}", path="/usr/bin:/usr/local/bin")
    for each in filter(None, (sys.executable, found)):
        real = Path(each).resolve()
        if all(folder.stat().st_mode & 0o1 for folder in (real, *real.parents)):
            return each
    return None


COMPILE = ("compile", "model.onnx", "--device", "host")


def ended(process: subprocess.Popen[str]) -> Ended:
    """Wait for a command."""
    out, err = process.communicate(timeout=300)
    return Ended(process.returncode, out, err)


def model_bytes(version: int) -> bytes:
    """y = relu(x @ w1 + b1) @ w2, with 64 KiB of weights, which the library reads from the model's own file."""
    generator = np.random.default_rng(version)
    shapes = {"w1": (128, 256), "b1": (256,), "w2": (256, 8)}
    weights = [
        numpy_helper.from_array(generator.standard_normal(shape).astype(np.float32), name)
        for name, shape in shapes.items()
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["h0"], name="first"),
        helper.make_node("Add", ["h0", "b1"], ["h1"], name="bias"),
        helper.make_node("Relu", ["h1"], ["h2"], name="relu"),
        helper.make_node("MatMul", ["h2", "w2"], ["y"], name="second"),
    ]
    ports = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", [4, 128]), ("y", [4, 8]))]
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], weights)
    model: onnx.ModelProto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString()


def expected(version: int) -> np.ndarray[Any, Any]:
    """The output of a version on FEED."""
    generator = np.random.default_rng(version)
    w1, b1, w2 = (generator.standard_normal(s).astype(np.float32) for s in ((128, 256), (256,), (256, 8)))
    return np.asarray(np.maximum(FEED["x"] @ w1 + b1, 0) @ w2)


def is_of(output: np.ndarray[Any, Any], version: int) -> bool:
    """Whether an output is that of a version."""
    return bool(np.allclose(output, expected(version), rtol=1e-4, atol=1e-3))


def problems(build: Path, versions: tuple[int, ...]) -> Iterator[str]:
    """What is wrong in a build folder that was disturbed: half-written JSON, or a model that mixes versions."""
    for kind, name in FILES.items():
        if (build / name).is_file():
            try:
                if read_artifact(build / name, kind).edited:
                    yield f"{name} is not what its digest says"
            except TilecError as error:
                yield f"{name}: {error}"
    run = build / RUN_FILE
    if run.is_file() and read_run(build) == {}:
        yield f"{run.name} is half-written"
    if (build / FILES["kernels"]).is_file():
        try:
            output = load(build).run(FEED)["y"]
        except TilecError:
            return  # refused: nothing mixed is read
        if not any(is_of(output, version) for version in versions):
            yield "the loaded model computes what no version of it does"
