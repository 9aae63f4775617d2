"""Which buffers are views, written through, or of their own: seen in the memories of resolved kernels."""

from tests.programs import buffer, compute, loop, tensor, whole
from tilec.codegen.cpu.kernel_ir import KernelIR, tiles
from tilec.codegen.cpu.passes.assign_storage import assign_storage
from tilec.codegen.cpu.passes.promote_registers import promote_registers
from tilec.codegen.cpu.passes.scratch_allocation import allocate_scratch
from tilec.codegen.cpu.passes.window_storage import strides_of
from tilec.codegen.cpu.target import CpuTarget
from tilec.ir.plan import PlanLevel
from tilec.ir.program import Allocate, Fill, LoadTiles, Program, Statement, StoreTiles

LEVELS = (PlanLevel("dram", None), PlanLevel("l2", None, 2, "implicit", "core"), PlanLevel("reg", None))
COPY = tensor("Y[i, j] = X[i, j] + 1.0", {"i": 8, "j": 64})
IN, OUT = whole("X", (8, 64)), whole("Y", (8, 64))
BOX = {"i": "p*4:p*4 + 4", "j": "0:64"}


def resolved(*body: Statement, outputs: tuple[str, ...] = ("Y",), parameters=(IN, OUT)) -> KernelIR:
    inside = loop("p", 2, *body, scope="core")
    program = Program("k", LEVELS, (), parameters, outputs, (inside,))
    return allocate_scratch(promote_registers(assign_storage(program, CpuTarget()), CpuTarget(), {}))


def own(tree: KernelIR) -> dict[str, str]:
    """Memories that are not operands: buffer -> kind."""
    return {m.name.rpartition(".")[0]: m.kind for m in tree.memories if m.kind != "operand"}


def window(name: str, level: str = "l2", tensor_name: str = "", inside: str = "p*4:p*4 + 4, 0:64", **options: object):
    return Allocate(buffer(name, level, f"{tensor_name or name[0]}[{inside}]", **options))


def test_loads_are_views_and_stores_write_through():
    tree = resolved(
        *(window("X_l2"), LoadTiles("X_l2", "X"), window("Y_l2"), compute(COPY, "Y_l2", "_l2", **BOX)),
        StoreTiles("Y", "Y_l2"),
    )
    assert own(tree) == {}
    assert len(list(tiles(tree.nests[0].body))) == 1


def test_a_load_that_fills_outside_the_tensor_is_staged():
    x = window("X_l2", inside="p*4 - 1:p*4 + 3, 0:64")
    tree = resolved(
        x, LoadTiles("X_l2", "X", 0.0), window("Y_l2"), compute(COPY, "Y_l2", "_l2", **BOX), StoreTiles("Y", "Y_l2")
    )
    assert own(tree) == {"X_l2": "scratch"}
    assert tree.scratch_bytes == 4 * 64 * 4


def test_a_load_that_could_fill_but_never_does_is_a_view():
    tree = resolved(
        *(window("X_l2"), LoadTiles("X_l2", "X", 0.0), window("Y_l2"), compute(COPY, "Y_l2", "_l2", **BOX)),
        StoreTiles("Y", "Y_l2"),
    )
    assert own(tree) == {}


def test_a_view_of_a_staged_window_keeps_its_fill():
    x = window("X_l2", inside="p*4 - 1:p*4 + 5, 0:64")
    inner = window("X_reg", "reg", inside="p*4 - 1:p*4 + 3, 0:64")
    one = tensor("Y[i, j] = X[i - 1, j]", {"i": 8, "j": 64})
    body = (window("Y_reg", "reg"), inner, LoadTiles("X_reg", "X_l2", 0.0), compute(one, "Y_reg", "_reg", **BOX))
    tree = resolved(x, LoadTiles("X_l2", "X", 0.0), *body, StoreTiles("Y", "Y_reg"))
    assert own(tree) == {"X_l2": "scratch"}


def test_another_layout_is_a_copy():
    tree = resolved(
        *(window("X_l2", layout=(1, 0)), LoadTiles("X_l2", "X"), window("Y_l2")),
        *(compute(COPY, "Y_l2", "_l2", **BOX), StoreTiles("Y", "Y_l2")),
    )
    assert own(tree) == {"X_l2": "scratch"}
    assert len(list(tiles(tree.nests[0].body))) == 2


def test_what_is_overwritten_later_is_copied():
    """The loaded values are needed after their place has got new ones."""
    again = tensor("Z[i, j] = X[i, j] * 2.0", {"i": 8, "j": 64})
    body = (
        *(window("T_l2", tensor_name="X"), LoadTiles("T_l2", "X"), window("X_reg", "reg"), LoadTiles("X_reg", "T_l2")),
        *(window("N_reg", "reg", tensor_name="X"), Fill("N_reg", 3.0), StoreTiles("X", "N_reg")),
        *(window("Z_reg", "reg"), compute(again, "Z_reg", "_reg", **BOX), StoreTiles("Z", "Z_reg")),
    )
    tree = resolved(*body, outputs=("X", "Z"), parameters=(IN, whole("Z", (8, 64))))
    assert "X_reg" in own(tree) or "T_l2" in own(tree)


def test_accumulators_of_the_highest_level_are_registers():
    sums = tensor("Y[i, j] = sum(k, A[i, k] * B[k, j])", {"i": 4, "j": 64, "k": 32})
    a, b, y = whole("A", (4, 32)), whole("B", (32, 64)), whole("Y", (4, 64))
    inner = (
        *(Allocate(buffer("A_r", "reg", "A[0:4, q*8:q*8 + 8]")), LoadTiles("A_r", "A")),
        *(Allocate(buffer("B_r", "reg", "B[q*8:q*8 + 8, p*32:p*32 + 32]")), LoadTiles("B_r", "B")),
        compute(sums, "Y_r", "_r", True, j="p*32:p*32 + 32", k="q*8:q*8 + 8"),
    )
    body = (Allocate(buffer("Y_r", "reg", "Y[0:4, p*32:p*32 + 32]")), Fill("Y_r", 0.0), loop("q", 4, *inner))
    tree = resolved(*body, StoreTiles("Y", "Y_r"), parameters=(a, b, y))
    assert own(tree) == {"Y_r": "local"}
    (memory,) = (m for m in tree.memories if m.kind == "local")
    assert memory.pieces == tuple((offset, 16) for offset in range(0, 128, 16))


def test_a_combined_store_is_not_written_through():
    tree = resolved(
        *(window("X_l2"), LoadTiles("X_l2", "X"), window("Y_l2"), compute(COPY, "Y_l2", "_l2", **BOX)),
        StoreTiles("Y", "Y_l2", combine="sum"),
    )
    assert own(tree) == {"Y_l2": "scratch"}


def test_strides_follow_the_layout():
    assert strides_of((2, 3, 4), ()) == (12, 4, 1)
    assert strides_of((2, 3, 4), (0, 2, 1)) == (12, 1, 3)
    assert strides_of((), ()) == ()
