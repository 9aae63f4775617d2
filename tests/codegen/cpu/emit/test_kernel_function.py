import numpy as np
from tvm import tirx
from tvm.tirx.script.builder import ir as I  # noqa: N812

from tests.cpu_models import int64, tensor, whole, write_model
from tilec.codegen.cpu.emit.kernel_function import Operand, kernel_function
from tilec.codegen.launch_table import Launch
from tilec.codegen.model import Model
from tilec.runtime import load


def vector(start):
    return tirx.Ramp(start, int64(1), 16)


def test_scratch_is_private_to_a_thread(tmp_path):
    """Each task writes its number all over the scratch, works for a while, and reads it back."""
    count, cells = 64, 512

    def body(buffers, scratch, task):
        kept = scratch.buffer(64, cells, "float32")
        with I.serial(int64(0), int64(cells)) as i:
            I.buffer_store(kept, task.astype("float32"), [i])
        I.buffer_store(buffers["y"], tirx.FloatImm("float32", 0), [task])
        with I.serial(int64(0), int64(cells)) as i:
            I.buffer_store(buffers["y"], buffers["y"][task] + kept[i], [task])

    function = kernel_function("keep", [Operand("y", "float32", count)], body, 64 + 4 * cells)
    launch = Launch("keep", (whole("output", 4 * count, writes=True),), count, 64 + 4 * cells)
    write_model(tmp_path, Model({"keep": function}, (launch,), (), (tensor("y", count),)))
    session = load(tmp_path, threads=3)
    for _ in range(50):
        np.testing.assert_array_equal(session.run({})["y"], np.arange(count, dtype=np.float32) * cells)


def test_vector_code_takes_operands_of_any_alignment(tmp_path):
    """Pointers that are only aligned to one element must not fault."""

    def body(buffers, scratch, task):
        I.buffer_store(buffers["y"], buffers["x"][vector(task * 16)], [vector(task * 16)])

    function = kernel_function("copy", [Operand("x", "float32", 64), Operand("y", "float32", 64)], body)
    arguments = (whole("input", 256, offset=4), whole("output", 256, 0, 12, True))
    write_model(
        tmp_path, Model({"copy": function}, (Launch("copy", arguments, 4),), (tensor("x", 65),), (tensor("y", 67),))
    )
    x = np.arange(65, dtype=np.float32)
    np.testing.assert_array_equal(load(tmp_path).run({"x": x})["y"][3:], x[1:])


def test_large_local_buffers_need_no_run_time_library(tmp_path):
    def body(buffers, scratch, task):
        local = I.alloc_buffer((4096,), "float32", scope="local")
        with I.serial(int64(0), int64(4096)) as i:
            I.buffer_store(local, i.astype("float32"), [i])
        I.buffer_store(buffers["y"], local[task * 100], [task])

    function = kernel_function("local", [Operand("y", "float32", 40)], body)
    launch = Launch("local", (whole("output", 160, writes=True),), 40)
    write_model(tmp_path, Model({"local": function}, (launch,), (), (tensor("y", 40),)))
    np.testing.assert_array_equal(load(tmp_path, threads=2).run({})["y"], np.arange(40) * 100)
