"""Threads, processes, copies and files."""

import asyncio
import concurrent.futures
import os
import threading

import numpy as np
import torch

from torch_backend.scenarios.program import X, linear, scenario


@scenario
def threads(wrap):
    module = linear()
    run, results = wrap(module), [None] * 4

    def work(n):
        with torch.no_grad():
            for _ in range(20):
                results[n] = run(X + n)

    with torch.no_grad():
        run(X)
    workers = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return results


@scenario
def forked(wrap):
    module = linear()
    run = wrap(module)
    with torch.no_grad():
        first = run(X)
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                module[0].weight.data.mul_(0)
                os.write(write, run(X).numpy().tobytes())
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        received = torch.from_numpy(np.frombuffer(os.read(read, 4096), np.float32).copy()).reshape(4, 5)
        os.close(read)
        os.close(write)
        return [first, received, run(X)]


@scenario
def first_calls_of_threads(wrap):
    run, results = wrap(linear()), [None] * 3

    def work(n):
        with torch.no_grad():
            results[n] = run(X + n)

    workers = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return results


@scenario
def workers_of_a_loader(wrap):
    run = wrap(linear())

    class Samples(torch.utils.data.Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, n):
            with torch.no_grad():
                return run(X + n)

    with torch.no_grad():
        first = run(X)
    return [first, *torch.utils.data.DataLoader(Samples(), batch_size=2, num_workers=1)]


@scenario
def pool_of_threads(wrap):
    run = wrap(linear())

    def work(n):
        with torch.inference_mode():
            return run(X[: 1 + n % 4] + n)

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        return [each.clone() for each in pool.map(work, range(12))]


@scenario
def tasks_of_a_loop(wrap):
    run = wrap(linear())

    async def work(n):
        with torch.no_grad():
            first = run(X + n)
        await asyncio.sleep(0)
        with torch.no_grad():
            return first + run(X)

    async def main():
        return await asyncio.gather(*(work(n) for n in range(3)))

    return asyncio.run(main())


@scenario
def modules_of_threads(wrap):
    """Each thread compiles a module of its own."""
    modules, results = [linear() for _ in range(3)], [None] * 3

    def work(n):
        run = wrap(modules[n])
        with torch.no_grad():
            modules[n][0].weight.data.mul_(2)
            first = run(X)
            modules[n][0].weight.data.mul_(2)
            results[n] = first + run(X)

    workers = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return results


def from_a_child(function):
    """What a child makes of four rows of five, or nothing where it fails."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, function().numpy().tobytes())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    received = torch.from_numpy(np.frombuffer(os.read(read, 4096), np.float32).copy())
    os.close(read)
    return received


@scenario
def first_call_in_a_child(wrap):
    module = linear()
    run = wrap(module)
    with torch.no_grad():
        return [from_a_child(lambda: run(X)), run(X), from_a_child(lambda: run(X[:2]))]


@scenario
def written_by_a_child(wrap):
    module = linear().share_memory()
    run = wrap(module)
    with torch.no_grad():
        first = run(X)
        child = from_a_child(lambda: module[0].weight.data.mul_(3))
        return [first, child, run(X)]


@scenario
def children_in_turn(wrap):
    module = linear()
    run = wrap(module)
    with torch.no_grad():
        results = [run(X)]
        for _ in range(3):
            results.append(from_a_child(lambda: run(X)))
            module[0].bias.data.add_(1)
        return [*results, run(X)]


@scenario
def threads_of_a_run(wrap):
    run, threads, results = wrap(linear()), torch.get_num_threads(), []
    try:
        with torch.no_grad():
            for n in (1, 2, 1):
                torch.set_num_threads(n)
                results.append(run(X))
    finally:
        torch.set_num_threads(threads)
    return results
