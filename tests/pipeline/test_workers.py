"""Tasks on worker processes: the same results as in turn, a worker that is lost, errors, and what is refused."""

import os
import random
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from bench.plans import host, product

from tilec.bench.measure import Effort, measuring
from tilec.errors import ConfigError, TilecError, UnavailableError, UsageError
from tilec.pipeline.building import builds_on
from tilec.pipeline.sweep import sweep
from tilec.pipeline.workers import _on, in_turn, workers_of
from tilec.progress import unseen
from tilec.report.sweep import sweep_csv
from tilec.spec.cpus import process_count
from tilec.spec.located import parse_yaml, validate
from tilec.spec.recipe import CodegenOptions
from tilec.spec.sweep import SweepRecipe

SWEEP = "kind: sweep\nmodels: [nerf-mlp]\ndevices: [a100, avx2]\nfusion: [none, apollo]\nshapes: {seq: [8]}\n"


@pytest.fixture(scope="module")
def cluster():
    """Two worker processes for all tests."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit=0) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def squared(number: int) -> int:
    """The first tasks take longest."""
    time.sleep(0.02 * (5 - number))
    return number * number


def dying(task: tuple[int, str]) -> int:
    """Task 3 ends its worker the first time."""
    number, marker = task
    if number == 3 and not Path(marker).exists():
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def failing(number: int) -> int:
    if number % 2:
        raise ConfigError(f"task {number}", "place", "hint")
    return number


def processes(_: int) -> int:
    return process_count()


def test_results_are_in_order_and_progress_counts_them(cluster) -> None:
    seen: list[tuple[int, int]] = []
    for workers in (in_turn, _on(cluster)):
        seen.clear()
        assert workers(squared, range(5), lambda done, total: seen.append((done, total))) == [0, 1, 4, 9, 16]
        assert seen == [(n, 5) for n in range(1, 6)]
    assert _on(cluster)(processes, range(2), unseen) == [1, 1]


def test_a_lost_worker_costs_its_task_once_more(cluster, tmp_path) -> None:
    tasks = [(n, str(tmp_path / "died")) for n in range(8)]
    assert _on(cluster)(dying, tasks, unseen) == list(range(8))
    assert (tmp_path / "died").exists()


def test_the_first_error_comes_back_as_it_was(cluster) -> None:
    for workers in (in_turn, _on(cluster)):
        with pytest.raises(ConfigError) as raised:
            workers(failing, range(4), unseen)
        assert (raised.value.message, raised.value.place, raised.value.hint) == ("task 1", "place", "hint")


def test_a_sweep_has_the_same_bytes(cluster) -> None:
    located = parse_yaml(SWEEP, "sweep.yaml")
    folders = {"models": Path(), "devices": Path()}
    texts = {
        sweep_csv(sweep(validate(SweepRecipe, located), located, unseen, folders, workers))
        for workers in (in_turn, _on(cluster))
    }
    (text,) = texts
    assert len(text.splitlines()) == 5
    assert ",no plan" not in text


@pytest.mark.slow
def test_twenty_workers_killed_at_random_lose_nothing() -> None:
    """In five clusters of four, each worker is killed in a round, at a moment within the time that a round takes. Those
    that Dask starts in their place are left alone: it gives up one that ends while it starts."""
    distributed = pytest.importorskip("distributed")
    draw = random.Random(0)
    for _ in range(5):
        with (
            distributed.LocalCluster(
                n_workers=4, threads_per_worker=1, dashboard_address=None, memory_limit=0
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            workers = sorted(nanny.pid for nanny in cluster.workers.values())
            for victim in draw.sample(workers, 4):
                timer = threading.Timer(draw.uniform(0, 0.6), os.kill, (victim, signal.SIGKILL))
                timer.start()
                assert _on(client)(slowly_squared, range(40), unseen) == [n * n for n in range(40)]
                timer.join()


def slowly_squared(number: int) -> int:
    time.sleep(0.05)
    return number * number


def others(_: int) -> int:
    """Workers that the scheduler knows."""
    from distributed import get_client

    client = get_client()
    client.wait_for_workers(3)
    return len(client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.workers)))


@pytest.mark.slow
def test_a_number_is_that_of_workers() -> None:
    pytest.importorskip("distributed")
    with workers_of("3") as workers:
        assert workers(others, [0], unseen) == [3]


@pytest.mark.parametrize("place", ["0", "-1", "two", "tcp://a:1", "dask://a", "dask://a:b", ""])
def test_what_names_no_workers_is_refused(place: str) -> None:
    with pytest.raises(UsageError, match="names no workers"), workers_of(place):
        pass


def test_no_scheduler_is_said(monkeypatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("tilec.pipeline.workers.CONNECTING", 0.5)
    with (
        pytest.raises(UnavailableError, match="no Dask scheduler answers at tcp://127.0.0.1:9"),
        workers_of("dask://127.0.0.1:9"),
    ):
        pass


def test_workers_of_another_version_are_refused(cluster, monkeypatch) -> None:
    address = cluster.scheduler.address.removeprefix("tcp://")
    with workers_of(f"dask://{address}") as workers:
        assert workers(squared, [3], unseen) == [9]
    monkeypatch.setattr("tilec.pipeline.workers.__version__", "0.0.0")
    with pytest.raises(TilecError, match=r"have tilec .*, this is 0\.0\.0"), workers_of(f"dask://{address}"):
        pass


@pytest.mark.feature("W40")
def test_candidates_are_built_on_workers_and_timed_here(cluster, tmp_path) -> None:
    """A plan that cannot be built is that plan's failure alone; what was built is what this process builds."""
    options = CodegenOptions(threads=1)
    right = product(6)
    (group,) = right.groups
    wrong = replace(right, groups=(replace(group, nodes=()),))
    folders = []
    for number, workers in enumerate((in_turn, _on(cluster))):
        made = builds_on(workers, host(), options)([right, wrong], tmp_path / str(number))
        assert list(made) == [0]
        folders.append({path.name: path.read_bytes() for path in made[0].rglob("*") if path.is_file()})
    assert folders[0] == folders[1]
    build = builds_on(_on(cluster), host(), options)
    with measuring(host(), options, Effort(1, 0.002), build) as measure:
        seconds = measure([right, wrong])
    assert seconds[0] is not None
    assert seconds[1] is None
