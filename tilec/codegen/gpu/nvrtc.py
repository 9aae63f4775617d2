"""NVIDIA's run-time compiler: kernels as machine code and PTX, without a driver or a GPU (L21).

The library comes with the package nvidia-cuda-nvrtc (extra `tilec[cuda]`) or with a CUDA toolkit.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from tilec.codegen.backend import Obstacle
from tilec.codegen.gpu.compiled import Compiled, KernelUse
from tilec.errors import TilecError
from tilec.extras import install

_ENTRY = re.compile(r"(?:Compiling entry function|Function properties for) '?(\w+)'?")
_REGISTERS = re.compile(r"Used (\d+) registers")
_SPILLED = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")


def compiler_library() -> str | None:
    """The path or the name of NVRTC here; None without one."""
    for path in _installed():
        return str(path)
    for name in ("libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "nvrtc64_130_0.dll", "nvrtc64_120_0.dll"):
        try:
            ctypes.CDLL(name)
        except OSError:
            continue
        return name
    return None


def obstacle(processor: str) -> Obstacle | None:
    """Why kernels for a processor are not compiled here."""
    library = compiler_library()
    if library is None:
        return Obstacle("kernels are text only: there is no NVRTC to compile them", install("cuda"))
    nvrtc, count = ctypes.CDLL(library), ctypes.c_int()
    nvrtc.nvrtcGetNumSupportedArchs(ctypes.byref(count))
    known = (ctypes.c_int * count.value)()
    nvrtc.nvrtcGetSupportedArchs(known)
    if re.sub(r"\D", "", processor) not in {str(each) for each in known}:
        return Obstacle(
            f"kernels are text only: this NVRTC does not compile for {processor}, but from sm_{known[0]} on",
            "pip install 'nvidia-cuda-nvrtc<13'",
        )
    return None


def _installed() -> list[Path]:
    spec = find_spec("nvidia")
    folders = [Path(each) for each in (spec.submodule_search_locations or ())] if spec is not None else []
    patterns = ("*/lib/libnvrtc.so.*[0-9]", "*/bin/**/nvrtc64_*_0.dll")
    return sorted((path for folder in folders for pattern in patterns for path in folder.glob(pattern)), reverse=True)


def compile_kernels(library: str, text: str, headers: dict[str, str], processor: str) -> Compiled:
    """Compile the text of kernels for a processor (`sm_80`). Raises TilecError with the compiler's words."""
    if Path(library).is_absolute():
        for builtins in sorted(Path(library).parent.glob("libnvrtc-builtins.so*")):
            ctypes.CDLL(str(builtins))  # opened by its name alone later, which finds what is loaded
    nvrtc = ctypes.CDLL(library)
    nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
    architecture = processor.removeprefix("sm_")
    options = [f"--gpu-architecture=sm_{architecture}", "--ptxas-options=-v"]
    binary, portable, log = _run(nvrtc, text, headers, options)
    return Compiled(binary, portable, _uses(log))


def _run(nvrtc: ctypes.CDLL, text: str, headers: dict[str, str], options: Sequence[str]) -> tuple[bytes, bytes, str]:
    """(machine code, PTX, what the compiler says)."""
    program = ctypes.c_void_p()
    names = (ctypes.c_char_p * len(headers))(*[name.encode() for name in headers])
    sources = (ctypes.c_char_p * len(headers))(*[source.encode() for source in headers.values()])
    made = nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernels.cu", len(headers), sources, names)
    _require(nvrtc, made, "")
    try:
        every = ["--std=c++17", *options]
        given = (ctypes.c_char_p * len(every))(*[option.encode() for option in every])
        done = nvrtc.nvrtcCompileProgram(program, len(every), given)
        log = _read(nvrtc, program, "ProgramLog").decode(errors="replace")
        _require(nvrtc, done, log)
        return _read(nvrtc, program, "CUBIN"), _read(nvrtc, program, "PTX"), log
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _read(nvrtc: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    _require(nvrtc, getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size)), "")
    data = ctypes.create_string_buffer(size.value)
    _require(nvrtc, getattr(nvrtc, f"nvrtcGet{what}")(program, data), "")
    return data.raw if what == "CUBIN" else data.raw.rstrip(b"\0")


def _require(nvrtc: ctypes.CDLL, code: int, log: str) -> None:
    if code != 0:
        wrong = [part for part in log.strip().split("\n\n") if ": error:" in part]
        words = "\n\n".join(wrong) or log.strip() or nvrtc.nvrtcGetErrorString(code).decode()
        raise TilecError(f"NVRTC refuses the kernels: {words[:2000]}", hint="This is a bug of tilec; report it.")


def _uses(log: str) -> dict[str, KernelUse]:
    """What kernels use, from the words of the assembler: a line with the kernel's name comes before its numbers."""
    uses: dict[str, KernelUse] = {}
    symbol, stores, loads = "", 0, 0
    for line in log.splitlines():
        if entry := _ENTRY.search(line):
            if entry[1] != symbol:
                stores = loads = 0
            symbol = entry[1]
        if spilled := _SPILLED.search(line):
            stores, loads = int(spilled[1]), int(spilled[2])
        if registers := _REGISTERS.search(line):
            uses[symbol] = KernelUse(int(registers[1]), stores + loads)
    return uses
