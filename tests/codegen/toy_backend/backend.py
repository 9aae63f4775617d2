"""A back end of kind `c`: every kernel as a C function, all in one shared library that gcc makes."""

import shutil
import subprocess

from tests.codegen.toy_backend.printer import kernel_text
from tilec.abi.manifest import LibraryFile
from tilec.artifact import digest_bytes, encode
from tilec.codegen.backend import Backend, Obstacle
from tilec.codegen.model import KernelCode, Model, model_of


def build(plan, kernels, device, options, folder, cache, observe, ahead, advance):
    code = {
        name: KernelCode(f"kernel_{i}", {f"kernel_{i}": kernel_text(program, f"kernel_{i}")})
        for i, (name, program) in enumerate(kernels.programs.items())
    }
    model = model_of(plan, kernels, code, folder, threads=1)
    text = "\n".join(["#include <math.h>", "#include <stdint.h>", *model.functions.values(), run_text(model)])
    source = folder / "kernels.c"
    source.write_text(text)
    library = folder / f"kernels-{digest_bytes(text.encode())[:16]}.so"
    flags = ["-O1", "-shared", "-fPIC", "-ffp-contract=off", "-Wall", "-Werror", "-Wno-unused"]
    subprocess.run(["gcc", *flags, "-o", str(library), str(source), "-lm"], check=True)
    return encode(model.manifest(LibraryFile(library.name, digest_bytes(library.read_bytes()))))


def run_text(model: Model[str]) -> str:
    """The launches of a segment in turn, with pointers from the table of the run."""
    lines = ["void run(int64_t segment, char **table) {"]
    for launch in model.started:
        pointers = [f"(float *)(table[{model.table.entry(a)}] + {a.offset})" for a in launch.arguments]
        lines.append(f"  if (segment == {launch.segment}) {launch.symbol}((float *[]){{{', '.join(pointers)}}});")
    return "\n".join([*lines, "}", ""])


def can_build(device):
    return None if shutil.which("gcc") else Obstacle("gcc is not there", "Install gcc.")


BACKEND = Backend(
    "c", "tests.codegen.toy_backend.loader:load", build, can_build, can_run=lambda *_: None, can_time=lambda *_: None
)
