import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cpu_models import chain, chain_reference, neighbours, rows, tensor, whole, write_model
from tilec.codegen.cpu.emit.host_function import host_function
from tilec.codegen.launch_table import Launch, PointerTable
from tilec.codegen.model import Model
from tilec.errors import UnsupportedError
from tilec.runtime import load


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize(("count", "width"), [(1, 1), (3, 7), (64, 5)])
def test_dependent_launches_see_each_others_results(tmp_path, threads, count, width):
    write_model(tmp_path, chain(9, count, width))
    session = load(tmp_path, threads=threads)
    x = np.random.default_rng(0).standard_normal((count, width), np.float32)
    for _ in range(20):
        np.testing.assert_array_equal(session.run({"x": x})["y"], chain_reference(x, 9))


@pytest.mark.parametrize("grain", [1, 3, 16, 100])
def test_every_task_runs_once_whatever_the_grain(tmp_path, grain):
    count = 37
    counting = rows("counting", count, 1, lambda read, t, j: read(0, t, j) + read(1, t, j))
    size = 4 * count
    model = Model(
        {"counting": counting},
        (Launch("counting", (whole("input", size), whole("output", size, writes=True)), count, grain=grain),),
        (tensor("x", count, 1),),
        (tensor("y", count, 1),),
    )
    write_model(tmp_path, model)
    y = np.zeros((count, 1), np.float32)
    for threads in (1, 2, 3):
        session = load(tmp_path, threads=threads)
        for _ in range(50):
            y[:] = 0
            session.run({"x": np.ones_like(y)}, {"y": y})
            np.testing.assert_array_equal(y, 1)


def test_launches_without_tasks_are_left_out(tmp_path):
    model = chain(3, 4, 2)
    launches = list(model.launches)
    launches.insert(1, Launch("neighbours", launches[0].arguments, 0))
    write_model(tmp_path, Model(model.functions, tuple(launches), model.inputs, model.outputs, model.arena_bytes))
    x = np.ones((4, 2), np.float32)
    np.testing.assert_array_equal(load(tmp_path).run({"x": x})["y"], 1)


def test_a_model_without_launches_runs(tmp_path):
    write_model(tmp_path, Model({}, (), (tensor("x", 0, 3),), (tensor("y", 3, 0),)))
    assert load(tmp_path).run({"x": np.zeros((0, 3), np.float32)})["y"].shape == (3, 0)


def test_one_kernel_serves_several_launches_and_offsets(tmp_path):
    half = 4 * 6 * 2
    both = (
        Launch("neighbours", (whole("input", half), whole("output", half, writes=True)), 6),
        Launch("neighbours", (whole("input", half, offset=half), whole("output", half, 0, half, True)), 6),
    )
    write_model(
        tmp_path,
        Model({"neighbours": neighbours("neighbours", 6, 2)}, both, (tensor("x", 12, 2),), (tensor("y", 12, 2),)),
    )
    x = np.arange(24, dtype=np.float32).reshape(12, 2)
    expected = np.concatenate([chain_reference(part, 1) for part in np.split(x, 2)])
    np.testing.assert_array_equal(load(tmp_path, threads=2).run({"x": x})["y"], expected)


def test_too_many_tasks_are_refused():
    with pytest.raises(UnsupportedError, match=r"2\^31"):
        host_function([Launch("k", (), 1 << 31)], PointerTable(0, 0, 0))


@settings(max_examples=8, deadline=None)
@given(st.data())
def test_random_programs_over_one_arena_equal_sequential_execution(tmp_path_factory, data):
    """Launches that read and write random slots of the arena: the waits must order them like one thread would."""
    slots, count, width = 5, 11, 3
    size = 4 * count * width
    pairs = data.draw(
        st.lists(
            st.tuples(st.integers(0, slots - 1), st.integers(0, slots - 1)).filter(lambda p: p[0] != p[1]),
            min_size=1,
            max_size=25,
        )
    )
    copy = rows("copy", count, width, lambda read, t, j: read(0, t, j))
    launches = [
        Launch("copy", (whole("input", size, s), whole("arena", size, 0, s * size, True)), count) for s in range(slots)
    ]
    launches += [
        Launch("neighbours", (whole("arena", size, 0, a * size), whole("arena", size, 0, b * size, True)), count)
        for a, b in pairs
    ]
    launches += [
        Launch("copy", (whole("arena", size, 0, s * size), whole("output", size, s, writes=True)), count)
        for s in range(slots)
    ]
    names = range(slots)
    model = Model(
        {"copy": copy, "neighbours": neighbours("neighbours", count, width)},
        tuple(launches),
        tuple(tensor(f"x{s}", count, width) for s in names),
        tuple(tensor(f"y{s}", count, width) for s in names),
        slots * size,
    )
    folder = tmp_path_factory.mktemp("random")
    write_model(folder, model)
    values = [np.random.default_rng(s).standard_normal((count, width), np.float32) for s in names]
    feeds = {f"x{s}": value.copy() for s, value in enumerate(values)}
    for a, b in pairs:
        values[b] = chain_reference(values[a], 1)
    session = load(folder, threads=3)
    for _ in range(10):
        result = session.run(feeds)
        for s in names:
            np.testing.assert_array_equal(result[f"y{s}"], values[s])
