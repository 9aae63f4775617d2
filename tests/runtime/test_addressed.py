"""Runs on addresses alone: the results of runs on arrays."""

import threading
from dataclasses import replace

import numpy as np
import pytest

from tests.cpu_models import chain, chain_reference, sized_chain, write_model
from tilec.errors import UsageError
from tilec.runtime import load
from tilec.runtime.memory import address, aligned_array

SIZES = ((40, 33), (2, 7), (100, 2), (1, 1))


@pytest.fixture(scope="module")
def sized(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sized")
    write_model(folder, sized_chain(7, repeat=3, batch=(0, 500)))
    return folder


def run(call, *inputs):
    outputs = [aligned_array(shape, dtype) for shape, dtype in call.outputs]
    call.run([address(array) for array in (*inputs, *outputs)])
    return outputs


def given(batch, seq, seed):
    x = np.random.default_rng(seed).standard_normal((batch, seq), np.float32)
    return x, np.zeros((seq, seq + 1, 2), np.float32)


@pytest.mark.parametrize("threads", [1, 3])
def test_known_sizes(tmp_path, threads):
    write_model(tmp_path, chain(12, 32, 40, repeat=20))
    session = load(tmp_path, threads=threads)
    call = session.addressed([(32, 40)])
    for seed in range(3):
        x = np.random.default_rng(seed).standard_normal((32, 40), np.float32)
        np.testing.assert_array_equal(run(call, x)[0], chain_reference(x, 12))
        np.testing.assert_array_equal(session.run({"x": x})["y"], chain_reference(x, 12))
    with pytest.raises(UsageError, match=r"'x' has shape \[32, 41\], the model has \[32, 40\]"):
        session.addressed([(32, 41)])


def test_a_call_that_begins_while_another_runs_has_memory_of_its_own(sized):
    """At the moment at which the first one's job is told to run, another call takes place from its beginning to its
    end."""
    session = load(sized, threads=1)
    executor = session._executor
    library = executor._library
    begun = []

    def interrupted(job):
        begun.append(job)
        if len(begun) == 2:
            (inner,) = run(calls[2, 7], *given(2, 7, 3))
            np.testing.assert_array_equal(inner, chain_reference(given(2, 7, 3)[0], 7))
        library.run(job)

    executor._library = replace(library, run=interrupted)
    calls = {size: session.addressed([array.shape for array in given(*size, 0)]) for size in SIZES[:2]}
    run(calls[2, 7], *given(2, 7, 1))
    outer = run(calls[40, 33], *given(40, 33, 2))[0]
    np.testing.assert_array_equal(outer, chain_reference(given(40, 33, 2)[0], 7))
    assert len(begun) == 3
    assert len(set(begun[1:])) == 2


def test_calls_of_several_sizes_take_turns_and_overlap(sized):
    """They share working memory, which each finds as large as it needs; no two runs have the same at a time."""
    session = load(sized, threads=2)
    calls = {size: session.addressed([array.shape for array in given(*size, 0)]) for size in SIZES}
    told = []
    calls[2, 7] = calls[2, 7].told(lambda: told.append(1))
    wrong = []

    def caller(seed):
        for number in range(60):
            size = SIZES[(number + seed) % len(SIZES)]
            x, also = given(*size, seed)
            if not np.array_equal(run(calls[size], x, also)[0], chain_reference(x, 7)):
                wrong.append(size)

    threads = [threading.Thread(target=caller, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(told) == 60
