"""`tilec codegen --emit c-api`: a compiled model as files that a C program is built and run with (B20, B21)."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from importlib import resources
from pathlib import Path
from string import Template

from tilec.abi.archive import INTERFACE, unpack
from tilec.abi.manifest import Manifest, TensorSpec
from tilec.artifact import write_bytes
from tilec.codegen.cpu.c_api.tables import C_ABI, MAX_RANK, TYPES, c_type, tables, tensor_ports
from tilec.codegen.cpu.c_api.toolchain import link_libraries
from tilec.errors import UnsupportedError
from tilec.ir.types import element_bytes

PARTS = ("model.c", "sizes.c", "feeds.c", "pool.c", "memory.c", "session.c")
"""The sources of a session, in the order in which they are joined behind the tables."""

FUNCTIONS = ("abi", "input", "output", "open", "shapes", "run", "close", "error")
"""The functions of a model's header, without its name."""


def emit_c_api(name: str, manifest: Manifest, source: Path, folder: Path) -> tuple[str, ...]:
    """Write the files of model `name`, compiled into `source`, to `folder`; returns their names.

    Raises UnsupportedError for a model with parts that need Python, UnavailableError without a C compiler.
    """
    refuse_calls(manifest)
    identifier = c_identifier(name)
    names = _names(name, identifier, manifest)
    texts = {
        "tilec.h": _filled("tilec.h", names),
        f"{identifier}.h": _filled("model.h", names),
        "main.c": _filled("main.c", names),
    }
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        work = Path(place)
        (work / "tilec.h").write_text(texts["tilec.h"], encoding="utf-8")
        session = "\n".join([tables(manifest, identifier), *map(_text, PARTS)])
        (work / "session.c").write_text("#define _GNU_SOURCE\n" + session, encoding="utf-8")
        exported = [f"{identifier}_{function}" for function in FUNCTIONS]
        link_libraries(work / "session.c", _objects(manifest, source, work), exported, folder, identifier)
    for file, text in texts.items():
        write_bytes(folder / file, text.encode())
    weights = [file.file for file in manifest.weights]
    for file in weights:
        _bring(source / file, folder / file)
    return (*texts, f"lib{identifier}.so", f"lib{identifier}.a", *weights)


def refuse_calls(manifest: Manifest) -> None:
    """Raise UnsupportedError for a model that a C program cannot run."""
    for call in manifest.calls:
        what = "a serial loop" if call.loop else f"{call.model.file} on onnxruntime"
        raise UnsupportedError(f"a C program cannot run this model: it runs {what}", hint="`tilec inspect` lists it.")
    if manifest.library is None:
        raise UnsupportedError(
            "a C program cannot run this model: nothing of it is compiled", hint="onnxruntime runs all of it."
        )


def c_identifier(name: str) -> str:
    """The prefix of a model's functions: its name as a C identifier."""
    plain = re.sub(r"[^0-9a-zA-Z]+", "_", name).strip("_").lower() or "model"
    return f"model_{plain}" if plain[0].isdigit() else plain


def _objects(manifest: Manifest, source: Path, work: Path) -> list[Path]:
    """The object files of the library, unpacked."""
    assert manifest.library is not None
    paths: list[Path] = []
    for member, data in unpack((source / manifest.library.file).read_bytes(), manifest.library.file):
        if member != INTERFACE:
            paths.append(work / f"{len(paths)}.o")
            paths[-1].write_bytes(data)
    return paths


def _bring(source: Path, target: Path) -> None:
    """The weights as a file that stays when the folder is moved: one more name of it, else a copy."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    try:
        os.link(source.resolve(), target)
    except OSError:
        shutil.copyfile(source, target)


def _names(name: str, identifier: str, manifest: Manifest) -> dict[str, str]:
    inputs, outputs = tensor_ports(manifest.inputs), tensor_ports(manifest.outputs)
    most = f"{manifest.threads}, or " if manifest.threads else ""
    fewer = " if fewer" if manifest.threads else ""
    extents = [[spec.name, *(str(extent) for extent in spec.shape if isinstance(extent, str))] for spec in inputs]
    return {
        "NAME": name,
        "IDENTIFIER": identifier,
        "C_ABI": str(C_ABI),
        "MAX_RANK": str(MAX_RANK),
        "TYPES": ",\n".join(f"    {c_type(ttype)} = {number}" for number, ttype in enumerate(TYPES)),
        "ELEMENT_BYTES": ", ".join(str(element_bytes(ttype)) for ttype in TYPES),
        "INPUTS": str(len(inputs)),
        "OUTPUTS": str(len(outputs)),
        "THREADS": f"{most}one per usable CPU{fewer}",
        "SIGNATURE": f"{_described(inputs)} -> {_described(outputs)}",
        "ARGUMENTS": "".join(f" {_plain(each)}" for words in extents for each in words),
    }


def _described(specs: tuple[TensorSpec, ...]) -> str:
    """`x f32[batch, 16]`."""
    return ", ".join(f"{_plain(spec.name)} {spec.ttype}[{', '.join(map(str, spec.shape))}]" for spec in specs)


def _plain(text: str) -> str:
    """A text that stands in comments and strings of C."""
    return re.sub(r"[^0-9a-zA-Z_.+ -]+", "_", text)


def _filled(file: str, names: dict[str, str]) -> str:
    return Template(_text(file)).substitute(names)


def _text(file: str) -> str:
    return resources.files("tilec.codegen.cpu.c_api").joinpath(file).read_text(encoding="utf-8")
