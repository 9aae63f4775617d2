"""Later runs on arrays that are handed over as they are give the results of the first, and leave to it what they are
not made for."""

import threading

import numpy as np
import pytest

from tests.cpu_models import chain, chain_reference, rows, sized_chain, tensor, whole, write_model
from tilec.codegen.launch_table import Launch
from tilec.codegen.model import Model
from tilec.errors import UsageError
from tilec.runtime import load


def fork(count: int) -> Model:
    """Two results of one input: its rows plus 1 and times 2."""
    size = 12 * count
    kernels = {
        "more": rows("more", count, 3, lambda read, t, j: read(0, t, j) + 1),
        "twice": rows("twice", count, 3, lambda read, t, j: read(0, t, j) * 2),
    }
    launches = [
        Launch(name, (whole("input", size), whole("output", size, n, writes=True)), count)
        for n, name in enumerate(kernels)
    ]
    outputs = (tensor("more", count, 3), tensor("twice", count, 3))
    return Model(kernels, tuple(launches), (tensor("x", count, 3),), outputs)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    made = {}
    for count in (5, 500):  # results in one block, and each in its own
        made[count] = tmp_path_factory.mktemp("fork")
        write_model(made[count], fork(count))
    return made


def values(count, seed=0):
    return np.random.default_rng(seed).standard_normal((count, 3), np.float32)


@pytest.mark.parametrize("count", [5, 500])
def test_results_are_fresh_aligned_and_apart(folders, count):
    session = load(folders[count])
    kept = []
    for seed in range(4):
        x = values(count, seed)
        kept.append((x, session.run({"x": x})))
    for x, results in kept:
        assert list(results) == ["more", "twice"]
        assert all(result.ctypes.data % 64 == 0 for result in results.values())
        np.testing.assert_array_equal(results["more"], x + 1)
        np.testing.assert_array_equal(results["twice"], 2 * x)


@pytest.mark.parametrize("count", [5, 500])
def test_a_result_goes_where_the_caller_wants_it(folders, count):
    session, x = load(folders[count]), values(count)
    session.run({"x": x})
    for given in (np.empty_like(x), np.empty_like(x.T).T, np.empty(x.shape, ">f4")):
        results = session.run({"x": x}, {"twice": given})
        assert results["twice"] is given
        np.testing.assert_array_equal(given, 2 * x)
        np.testing.assert_array_equal(results["more"], x + 1)


def test_arrays_that_share_memory_keep_their_values(folders):
    """A result may be the input, or lie over it in part, or lie over another result."""
    session = load(folders[5])
    session.run({"x": values(5)})
    for place in (0, 6, 12):
        memory = np.zeros(40, np.float32)
        x, target = memory[6:21].reshape(5, 3), memory[place : place + 15].reshape(5, 3)
        x[:] = values(5)
        results = session.run({"x": x}, {"twice": target})
        np.testing.assert_array_equal(results["twice"], 2 * values(5))
        np.testing.assert_array_equal(results["more"], values(5) + 1)
    memory = np.zeros(16, np.float32)
    out = {"more": memory[:15].reshape(5, 3), "twice": memory[1:].reshape(5, 3)}
    session.run({"x": values(5)}, out)
    np.testing.assert_array_equal(out["twice"], 2 * values(5))


def test_every_layout_and_read_only_arrays_are_read(folders):
    session, x = load(folders[5]), values(5)
    session.run({"x": x})
    frozen = x.copy()
    frozen.flags.writeable = False
    for given in (np.asfortranarray(x), x[::-1].copy()[::-1], x.astype(">f4"), frozen, x.tolist()):
        given = np.asarray(given, np.float32) if isinstance(given, list) else given
        np.testing.assert_array_equal(session.run({"x": given})["twice"], 2 * x)


def test_later_runs_refuse_what_the_first_refuses(folders):
    session, x = load(folders[5]), values(5)
    session.run({"x": x})
    frozen = np.empty_like(x)
    frozen.flags.writeable = False
    for feeds, out, message in (
        ({}, {}, "'x' is missing"),
        ({"x": x, "z": x}, {}, "no input 'z'"),
        ({"x": x[:2]}, {}, "has shape"),
        ({"x": x.astype(np.float64)}, {}, "element type float64"),
        ({"x": x}, {"twice": frozen}, "read-only"),
        ({"x": x}, {"thrice": x}, "no output 'thrice'"),
        ({"x": x}, {"twice": np.empty((5, 4), np.float32)}, "has shape"),
    ):
        with pytest.raises(UsageError, match=message):
            session.run(feeds, out)


def test_bound_arrays_are_read_and_written_in_place(folders):
    session, x = load(folders[5]), values(5)
    out = {"more": np.empty_like(x), "twice": np.empty_like(x)}
    again = session.bound({"x": x}, out)
    for seed in range(3):
        x[:] = values(5, seed)
        assert again()["twice"] is out["twice"]
        np.testing.assert_array_equal(out["more"], values(5, seed) + 1)
    strided = values(10)[::2]
    again = session.bound({"x": strided}, out)
    strided[:] = 3
    again()
    np.testing.assert_array_equal(out["twice"], np.full((5, 3), 6, np.float32))
    with pytest.raises(UsageError, match="has shape"):
        session.bound({"x": x[:2]}, out)


def test_sizes_take_turns_from_several_threads(tmp_path):
    write_model(tmp_path, sized_chain(7, repeat=3, batch=(0, 500)))
    session, wrong = load(tmp_path, threads=2), []

    def call(seed):
        for number in range(40):
            batch, seq = ((40, 33), (2, 7), (100, 2), (0, 3), (1, 1))[(number + seed) % 5]
            x = np.random.default_rng(seed).standard_normal((batch, seq), np.float32)
            feeds = dict(
                zip([port.name for port in session.inputs], (x, np.zeros((seq, seq + 1, 2), "f4")), strict=True)
            )
            result = next(iter(session.run(feeds).values()))
            if not np.array_equal(result, chain_reference(x, 7)):
                wrong.append((batch, seq))

    threads = [threading.Thread(target=call, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_chain_of_launches_runs_bound_with_several_threads(tmp_path):
    write_model(tmp_path, chain(12, 32, 40, repeat=20))
    x = np.random.default_rng(1).standard_normal((32, 40), np.float32)
    again = load(tmp_path, threads=3).bound({"x": x}, {"y": np.empty_like(x)})
    for _ in range(20):
        np.testing.assert_array_equal(again()["y"], chain_reference(x, 12))
