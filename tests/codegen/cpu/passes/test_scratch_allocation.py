from tilec.codegen.cpu.extents import Extent
from tilec.codegen.cpu.kernel_ir import Array, KernelIR
from tilec.codegen.cpu.passes.scratch_allocation import allocate_scratch
from tilec.codegen.cpu.verify_kernel import check_kernel
from tilec.ir.expr import Expr
from tilec.ir.text import parse_expr, text_of


def life(name: str, elements: Extent, first: int, last: int, ttype: str = "f32", kind: str = "scratch") -> Array:
    return Array(name, ttype, elements, kind, life=(first, last))  # type: ignore[arg-type]


def places(*arrays: Array) -> tuple[dict[str, Extent | None], Extent]:
    kernel = allocate_scratch(KernelIR("k", arrays, (), 0, symbols=("n",)))
    assert check_kernel(kernel) == ()
    return {array.name: array.offset for array in kernel.memories}, kernel.scratch_bytes


def test_memories_in_use_together_lie_apart():
    assert places(life("a", 16, 0, 2), life("b", 32, 2, 3)) == ({"a": 128, "b": 0}, 192)


def test_memories_one_after_the_other_share_a_place():
    assert places(life("a", 16, 0, 2), life("b", 32, 3, 4)) == ({"a": 0, "b": 0}, 128)


def test_the_smallest_place_that_fits_is_taken():
    offsets, total = places(life("a", 64, 0, 1), life("b", 32, 0, 1), life("c", 16, 2, 3))
    assert offsets == {"a": 0, "b": 256, "c": 256}
    assert total == 384


def test_types_do_not_share():
    """Two TIR buffers in one place would be taken as not aliased."""
    assert places(life("a", 16, 0, 1), life("b", 16, 2, 3, "i32"))[1] == 128


def test_places_start_at_cache_lines_and_registers_take_none():
    offsets, total = places(life("a", 3, 0, 9, "i8"), life("b", 3, 0, 9, "i8"), life("c", 3, 0, 9, kind="local"))
    assert sorted((offsets["a"], offsets["b"])) == [0, 64]
    assert total == 128


def text(extent: Extent | None) -> str | int | None:
    return text_of(extent) if isinstance(extent, Expr) else extent


def test_open_sizes_lie_behind_numbers_one_after_the_other():
    rows, more = parse_expr("maximum(n * 16, 1)"), parse_expr("maximum(n * 3, 1)")
    offsets, total = places(life("a", rows, 0, 2), life("b", more, 1, 2), life("c", 3, 0, 9, "i8"))
    end = "(maximum(n * 16, 1) + 15) // 16 * 64 + 64"
    assert {name: text(offset) for name, offset in offsets.items()} == {"a": 64, "b": end, "c": 0}
    assert text(total) == "(maximum(n * 16, 1) + 15) // 16 * 64 + (maximum(n * 3, 1) + 15) // 16 * 64 + 64"


def test_equal_open_sizes_share_a_place_by_lifetime():
    rows, again = parse_expr("maximum(n * 16, 1)"), parse_expr("maximum(16 * n, 1)")
    offsets, _ = places(life("a", rows, 0, 2), life("b", again, 3, 4), life("c", rows, 5, 6, "i32"))
    assert offsets["a"] == offsets["b"] == 0
    assert text(offsets["c"]) == "(maximum(n * 16, 1) + 15) // 16 * 64"
