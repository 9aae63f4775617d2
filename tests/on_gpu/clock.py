"""Times of what a stream replays: a graph behind another one, so that launching it takes no part in them."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Any

from tilec.runtime.gpu.driver import Driver

ROUNDS = 15

Figures = dict[str, float]
"""Microseconds: the median of the rounds, the least and the most."""


def replayed(driver: Driver, enqueue: Callable[[], None], count: int, rounds: int = ROUNDS) -> Figures:
    """Record launches, and time replays of all of them as `count` parts."""
    driver.begin_graph()
    enqueue()
    graph = driver.end_graph()
    driver.launch_graph(graph)
    driver.synchronize()
    samples = []
    for _ in range(rounds):
        driver.launch_graph(graph)
        first = driver.event()
        driver.launch_graph(graph)
        last = driver.event()
        driver.synchronize()
        samples.append(driver.elapsed(first, last) * 1e6 / count)
    return figures(samples)


def replayed_by_torch(torch: Any, call: Callable[[int], object], count: int, rounds: int = ROUNDS) -> Figures:
    """The same of calls of PyTorch, numbered from 0 on."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side), torch.no_grad():
        for number in range(min(3, count)):
            call(number)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph, capture_error_mode="relaxed"):
        for number in range(count):
            call(number)
    graph.replay()
    samples = []
    for _ in range(rounds):
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        graph.replay()
        first.record()
        graph.replay()
        last.record()
        torch.cuda.synchronize()
        samples.append(first.elapsed_time(last) * 1e3 / count)
    return figures(samples)


def figures(samples: list[float]) -> Figures:
    """The median, the least and the most."""
    return {"us": round(median(samples), 3), "least": round(min(samples), 3), "most": round(max(samples), 3)}
