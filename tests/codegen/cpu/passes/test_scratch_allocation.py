from tilec.codegen.cpu.kernel_ir import Array, KernelIR
from tilec.codegen.cpu.passes.scratch_allocation import allocate_scratch


def life(name: str, elements: int, first: int, last: int, ttype: str = "f32", kind: str = "scratch") -> Array:
    return Array(name, ttype, elements, kind, life=(first, last))  # type: ignore[arg-type]


def places(*arrays: Array) -> tuple[dict[str, int | None], int]:
    kernel = allocate_scratch(KernelIR("k", arrays, (), 0))
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
