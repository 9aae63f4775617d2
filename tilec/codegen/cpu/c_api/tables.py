"""A manifest as the tables of C that the session of a C program reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tilec.abi import job_layout
from tilec.abi.alignment import ALIGNMENT
from tilec.abi.manifest import IndexSpec, Manifest, PortSpec, TensorSpec
from tilec.abi.shape_program import ShapeProgram, SymbolSpec
from tilec.errors import UnsupportedError
from tilec.ir.types import element_bytes

C_ABI = 1
"""Version of tilec.h and of the functions of a model's header."""

MAX_RANK = 16
"""The most dimensions of a tensor in tilec.h."""

# fmt: off
TYPES = (
    "f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8", "bool",
    "e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0", "e2m3", "e3m2", "e2m1", "i4", "u4", "i2", "u2", "i1", "u1",
)
# fmt: on
"""tTypes that tensors of a C program have, by their number in tilec.h: new ones are added at the end."""


def tensor_ports(ports: Iterable[PortSpec]) -> tuple[TensorSpec, ...]:
    """The ports, all of them tensors that a C program can pass. Raises UnsupportedError for another one."""
    specs = []
    for port in ports:
        if not isinstance(port, TensorSpec) or port.ttype not in TYPES:
            kind = port.ttype if isinstance(port, TensorSpec) else port.type
            raise UnsupportedError(
                f"a C program cannot pass {port.name!r}, which is {kind}", hint="tilec.load runs the model in Python."
            )
        if len(port.shape) > MAX_RANK:
            raise UnsupportedError(
                f"{port.name!r} has {len(port.shape)} dimensions, C programs pass {MAX_RANK}",
                hint="tilec.load runs the model in Python.",
            )
        specs.append(port)
    return tuple(specs)


def tables(manifest: Manifest, identifier: str) -> str:
    """The generated part of a model's session: names of functions, offsets of a job, ports, symbols, constants."""
    inputs, outputs = tensor_ports(manifest.inputs), tensor_ports(manifest.outputs)
    sizes = manifest.sizes
    symbols = () if sizes is None else sizes.symbols
    constraints = () if sizes is None else sizes.constraints
    lines = [
        '#include "tilec.h"',
        f"#define NAME(function) {identifier}_##function",
        *_job_layout(),
        *_counts(manifest),
        *_memory(manifest),
        "struct port { tilec_port shown; int32_t element_bytes; int32_t number[TILEC_MAX_RANK]; };",
        _table("struct port", "inputs", [_port(spec, sizes) for spec in inputs]),
        _table("struct port", "outputs", [_port(spec, sizes) for spec in outputs]),
        "struct symbol { const char *name, *allowed; int32_t at, dim; int64_t low, high, divisor, factor, constant; };",
        _table("struct symbol", "symbols", [_symbol(symbol) for symbol in symbols]),
        "struct constraint { const char *text; int32_t number; };",
        _table("struct constraint", "constraints", [f"{_text(c.holds)}, {c.number}" for c in constraints]),
        "struct range { int32_t input; int64_t extent; int32_t number, wraps, dim; int64_t at; int32_t besides;",
        "               int64_t value; const char *node; };",
        _table("struct range", "ranges", [_range(each, sizes) for each in manifest.ranges]),
        "struct state { int32_t input, output; };",
        _table("struct state", "states", [f"{given}, {made}" for given, made in manifest.states]),
        "struct weights { const char *name; int64_t bytes; };",
        _table("struct weights", "files", [f"{_text(file.file)}, {file.bytes}" for file in manifest.weights]),
        "struct constant { int32_t file; int64_t offset; };",
        _table("struct constant", "constants", [f"{each.file}, {each.offset}" for each in manifest.constants]),
    ]
    return "\n".join(lines) + "\n"


def _job_layout() -> list[str]:
    values = {name: value for name, value in vars(job_layout).items() if isinstance(value, int | float)}
    return [f"#define {name} {value}" for name, value in sorted({**values, "ALIGNMENT": ALIGNMENT}.items())]


def _counts(manifest: Manifest) -> list[str]:
    """Numbers of everything, and the place of the arenas in the table of pointers."""
    sizes = manifest.sizes
    arenas = 1 if sizes is None else len(sizes.arenas)
    first = len(manifest.inputs) + len(manifest.outputs) + len(manifest.constants)
    counts = {
        "INPUTS": len(manifest.inputs),
        "OUTPUTS": len(manifest.outputs),
        "CONSTANTS": len(manifest.constants),
        "FILES": len(manifest.weights),
        "RANGES": len(manifest.ranges),
        "STATES": len(manifest.states),
        "SYMBOLS": 0 if sizes is None else len(sizes.symbols),
        "CONSTRAINTS": 0 if sizes is None else len(sizes.constraints),
        "NUMBERS": 0 if sizes is None else len(sizes.numbers),
        "LAUNCHES": manifest.segments[0].launches,
        "ARENAS": arenas,
        "FIRST_ARENA": first,
        "TABLE": first + arenas + 1,
        "DEFAULT_THREADS": manifest.threads or 0,
    }
    return [f"#define {name} {count}" for name, count in counts.items()]


def _memory(manifest: Manifest) -> list[str]:
    """How much memory and how many threads a run uses, as functions of its numbers."""
    sizes = manifest.sizes
    if sizes is None:
        return [
            "#define COMPUTE_NUMBERS(numbers) ((void)(numbers))",
            f"#define ARENA_BYTES(number, numbers) ((int64_t){manifest.arena_bytes})",
            f"#define SCRATCH_BYTES(numbers) ((int64_t){manifest.scratch_bytes})",
            f"#define WIDTH(numbers) ((int64_t){manifest.segments[0].width})",
        ]
    return [
        "extern void tilec_numbers(int64_t *numbers, int64_t part);",
        f"static const int32_t arena_numbers[] = {{{', '.join(map(str, sizes.arenas)) or '0'}}};",
        "#define COMPUTE_NUMBERS(numbers) tilec_numbers((numbers), 0)",
        "#define ARENA_BYTES(number, numbers) ((numbers)[arena_numbers[number]])",
        f"#define SCRATCH_BYTES(numbers) ((numbers)[{sizes.scratch[0]}])",
        f"#define WIDTH(numbers) ((numbers)[{sizes.widths[0]}])",
    ]


def _table(kind: str, name: str, rows: Sequence[str]) -> str:
    """A table of rows; one without rows has an empty one, since C has no empty arrays."""
    inside = ",\n".join(f"    {{{row}}}" for row in rows) or "    {0}"
    return f"static const {kind} {name}[] = {{\n{inside}\n}};"


def _port(spec: TensorSpec, sizes: ShapeProgram | None) -> str:
    shape = [extent if isinstance(extent, int) else -1 for extent in spec.shape] or [1]
    positions = {} if sizes is None else sizes.extents
    numbers = [positions[extent] if isinstance(extent, str) else -1 for extent in spec.shape] or [-1]
    shown = f"{{{_text(spec.name)}, {c_type(spec.ttype)}, {len(spec.shape)}, {{{_list(shape)}}}}}"
    return f"{shown}, {element_bytes(spec.ttype)}, {{{_list(numbers)}}}"


def _symbol(symbol: SymbolSpec) -> str:
    high = -1 if symbol.high is None else symbol.high
    limits = _list((symbol.at, symbol.dim, symbol.low, high, symbol.divisor, symbol.factor))
    return f"{_text(symbol.name)}, {_text(symbol.allowed)}, {limits}, {_wide(symbol.constant)}"


def _range(each: IndexSpec, sizes: ShapeProgram | None) -> str:
    extent, number = (each.extent, -1) if isinstance(each.extent, int) else (0, 0)
    if isinstance(each.extent, str):
        assert sizes is not None
        number = sizes.extents[each.extent]
    dim, at = each.column or (-1, 0)
    besides, value = (0, 0) if each.besides is None else (1, each.besides)
    whole = _list((each.input, extent, number, int(each.wraps), dim, at, besides))
    return f"{whole}, {_wide(value)}, {_text(each.node)}"


def _wide(value: int) -> str:
    """A 64-bit integer; C has no negative literals."""
    return f"(int64_t){value % 2**64}ULL"


def c_type(ttype: str) -> str:
    """The constant of tilec.h for a tType."""
    return f"TILEC_{ttype.upper()}"


def _list(values: Iterable[int]) -> str:
    return ", ".join(map(str, values))


def _text(value: str) -> str:
    """A C string of the UTF-8 bytes of a text."""
    plain = {byte: chr(byte) for byte in range(32, 127) if chr(byte) not in '"\\?'}
    return '"' + "".join(plain.get(byte, f"\\{byte:03o}") for byte in value.encode()) + '"'
