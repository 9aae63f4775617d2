"""Constants of every type read back as themselves: in tile programs as text and JSON, in C++ and in tables of C."""

import json
import re
import subprocess

import numpy as np

from tests.codegen.gpu.kernels import emulated, rows_program
from tests.codegen.literals import NUMBERS, values_of
from tests.emulator.kernels import needs_compiler
from tilec.abi.manifest import IndexSpec
from tilec.abi.shape_program import SymbolSpec
from tilec.codegen.cpu.c_api import tables
from tilec.codegen.gpu.print.c_text import Names
from tilec.codegen.gpu.print.index_text import index_text
from tilec.ir import codec
from tilec.ir.evaluate import evaluate
from tilec.ir.expr import Const
from tilec.ir.graph import Inline
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.text import parse_expr, parse_tensor, text_of
from tilec.ir.types import numpy_dtype

EVERY = [(ttype, value) for ttype in NUMBERS for value in values_of(ttype)]


def test_texts_and_files_of_plans_read_back_as_they_are():
    for _, value in EVERY:
        stored = json.loads(json.dumps(codec._write_expr(Const(value)), allow_nan=False))
        inline = json.loads(json.dumps(codec._write_inline(Inline((value,))), allow_nan=False))
        for back in (parse_expr(text_of(Const(value))).value, codec._read_expr(stored).value):
            assert (type(back), repr(back)) == (type(value), repr(value))
        assert repr(codec._read_inline(inline).values) == repr((value,))


@needs_compiler
def test_constants_of_kernels_are_those_of_numpy():
    for begin in range(0, len(EVERY), 60):
        part = EVERY[begin : begin + 60]
        texts = [f"y{i}[m, n] = {text_of(Const(value))}" for i, (_, value) in enumerate(part)]
        types = {"x": "f32", **{f"y{i}": ttype for i, (ttype, _) in enumerate(part)}}
        x = np.zeros((1, 2), np.float32)
        found, _ = emulated(rows_program(texts, {"m": 1, "n": 2}, types), {"x": x}, 1)
        for i, (ttype, value) in enumerate(part):
            with np.errstate(all="ignore"):
                expected = evaluate(parse_tensor(texts[i], {"m": 1, "n": 2}), {"x": x}, ttype=ttype)
            assert found[f"y{i}"].tobytes() == expected.astype(numpy_dtype(ttype)).tobytes(), (ttype, value)


ENDS = [0, 1, -1, 2**31 - 1, -(2**31), 2**31, 2**32, 2**63 - 1, -(2**63)]


def test_indices_and_tables_hold_every_64_bit_integer(tmp_path):
    wide = [index_text(Const(value), Names(), KnownRanges(), wide=True) for value in ENDS]
    narrow = [index_text(Const(value), Names(), KnownRanges()) for value in ENDS if -(2**31) <= value < 2**31]
    symbols = [SymbolSpec("n", "input", 0, 0, constant=value) for value in ENDS]
    rows = [tables._symbol(each).rsplit(",", 1)[1] for each in symbols]
    ranges = [IndexSpec(0, 5, "node", besides=value) for value in ENDS]
    held = [re.search(r"\(int64_t\)\w+", tables._range(each, None)).group() for each in ranges]
    lines = [
        "#include <cstdint>",
        "#include <cstdio>",
        f"long long const a[] = {{{', '.join([*wide, *narrow])}}};",
        f"int64_t const b[] = {{{', '.join([*rows, *held])}}};",
        "template <class T> constexpr bool is_int(T) { return sizeof(T) == 4; }",
        *(f'static_assert(is_int({each}), "narrow");' for each in narrow),
        'int main() { for (auto x : a) printf("%lld\\n", x); for (auto x : b) printf("%lld\\n", (long long)x); }',
    ]
    (tmp_path / "t.cpp").write_text("\n".join(lines))
    subprocess.run(["g++", "-std=c++17", "-Wall", "-Werror", "-o", "t", "t.cpp"], cwd=tmp_path, check=True)
    printed = subprocess.run([tmp_path / "t"], capture_output=True, text=True, check=True).stdout.split()
    expected = [*ENDS, *(each for each in ENDS if -(2**31) <= each < 2**31), *ENDS, *ENDS]
    assert list(map(int, printed)) == expected
