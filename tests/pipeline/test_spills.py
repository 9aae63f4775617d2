"""The stage `codegen` tells of kernels that keep registers in memory."""

from tilec.pipeline.steps.codegen import spills


def kernel(symbol, spilled):
    return {"symbol": symbol, "block": 512, "registers": 128, "spilled_bytes": spilled}


def test_kernels_that_spill_are_counted_and_the_worst_is_named():
    assert spills([kernel("a", 8), kernel("b", 268), kernel("c", 0), kernel("d", None)]) == (
        "2 of 4 kernels keep registers in memory, b most: its threads, 512 a block, have 128 registers each and store "
        "and load 268 bytes beside them"
    )
    assert spills([kernel("a", 0), kernel("b", None)]) == spills([]) == ""
