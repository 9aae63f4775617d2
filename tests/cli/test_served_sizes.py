"""`tilec compile` without sizes: what it serves, and the likely sizes that sessions counted."""

import json

import pytest

from cli import models
from tilec.api.size_counts import SizeCount, SizeCounts, counts_text
from tilec.cli.served_sizes import ranges_text
from tilec.ir.sizes import Constraint, SymbolRange
from tilec.ir.text import parse_expr

AVX2 = ("--device", "avx2", "--no-bounds", "--to", "schedule")


def test_ranges_in_words():
    ranges = {
        "batch": SymbolRange(),
        "seq": SymbolRange(1, 512, origin="embeddings_Gather_2"),
        "past": SymbolRange(0, None, 8),
    }
    constraints = [Constraint(parse_expr("batch * seq % 12 == 0"), "node reshape")]
    assert ranges_text(ranges, constraints) == (
        "batch any, seq 1..512 (embeddings_Gather_2), past 0.., a multiple of 8, batch * seq % 12 == 0 (node reshape)"
    )


@pytest.mark.feature("B07")
def test_compile_says_which_sizes_it_serves(cli, tmp_path):
    models.mlp(tmp_path / "model.onnx", batch="batch")
    ran = cli("compile", "model.onnx", *AVX2, "--json")
    assert ran.code == 0, ran.err
    assert ran.err.splitlines()[-1] == "serves: batch any"
    assert json.loads(ran.out)["serves"] == {"batch": {"divisor": 1, "high": None, "low": 0, "origin": ""}}
    ran = cli("compile", "model.onnx", *AVX2, "--shape", "batch=8..64/8")
    assert ran.err.splitlines()[-1] == "serves: batch 8..64, a multiple of 8 (recipe: shapes.batch)"
    ran = cli("compile", "model.onnx", *AVX2, "--shape", "batch=8")
    assert "serves" not in ran.err


@pytest.mark.feature("B07")
def test_counted_sizes_are_the_likely_ones(cli, tmp_path):
    models.mlp(tmp_path / "model.onnx", batch="batch")
    counted = SizeCounts(100, (SizeCount({"batch": 24}, 90), SizeCount({"batch": 3}, 10)))
    (tmp_path / "sizes.json").write_text(counts_text(counted))
    ran = cli("compile", "model.onnx", *AVX2, "--shapes-from", "sizes.json")
    assert ran.code == 0, ran.err
    plan = json.loads((tmp_path / "model.tilec" / "2-plan.json").read_text())
    assert plan["symbol_ranges"]["batch"]["likely"] == [24, 3]
    assert cli("compile", "model.onnx", *AVX2, "--shape", "batch=24", "--shapes-from", "sizes.json").code == 0
    ran = cli("compile", "model.onnx", *AVX2, "--shape", "batch=1..16", "--shapes-from", "sizes.json")
    assert ran.code == 2
    assert "24 is not in the range from 1 to 16" in ran.err


def test_files_that_count_nothing(cli, tmp_path):
    models.mlp(tmp_path / "model.onnx", batch="batch")
    ran = cli("compile", "model.onnx", *AVX2, "--shapes-from", "none.json")
    assert (ran.code, ran.err) == (2, "error: none.json: no such file\n  Sessions write it as sizes.json.\n")
    (tmp_path / "soup.json").write_text("soup")
    ran = cli("compile", "model.onnx", *AVX2, "--shapes-from", "soup.json")
    assert ran.err == "error: soup.json: this is no file of counted sizes\n  Sessions write it as sizes.json.\n"
