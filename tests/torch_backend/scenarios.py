"""What users do around compiled modules: each function runs a program, whose modules and functions `wrap` has compiled
or left as they are, and returns what it computed."""

import copy
import os
import pickle
import threading
from collections.abc import Callable

import numpy as np
import torch
from torch import nn
from torch.nn import functional

SCENARIOS: dict[str, Callable] = {}


def scenario(function):
    SCENARIOS[function.__name__] = function
    return function


def linear():
    return nn.Sequential(nn.Linear(6, 5), nn.Tanh()).eval()


def batch_norm():
    module = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU()).eval()
    module[1].running_mean.normal_()
    return module


X = torch.linspace(-1, 1, 24).reshape(4, 6)
IMAGE = torch.linspace(-1, 1, 2 * 2 * 5 * 5).reshape(2, 2, 5, 5)


def written(wrap, write, module=None, x=X):
    """Results before and after a write."""
    module = linear() if module is None else module
    run = wrap(module)
    with torch.no_grad():
        before = run(x)
        write(module)
        return [before, run(x), run(x)]


@scenario
def data_copy(wrap):
    return written(wrap, lambda m: m[0].weight.data.copy_(torch.ones(5, 6)))


@scenario
def data_add(wrap):
    def write(m):
        m[0].weight.data += 0.5

    return written(wrap, write)


@scenario
def data_assigned(wrap):
    def write(m):
        m[0].weight.data = torch.ones(5, 6)

    return written(wrap, write)


@scenario
def data_transposed(wrap):
    module = nn.Sequential(nn.Linear(6, 6), nn.Tanh())

    def write(m):
        m[0].weight.data = m[0].weight.data.t()

    return written(wrap, write, module)


@scenario
def counted_write(wrap):
    return written(wrap, lambda m: m[0].weight.mul_(2))


@scenario
def numpy_write(wrap):
    def write(m):
        m[0].weight.detach().numpy()[:] = 0.25

    return written(wrap, write)


@scenario
def one_element_by_numpy(wrap):
    def write(m):
        m[0].weight.detach().numpy()[3, 2] = 7

    return written(wrap, write)


@scenario
def buffer_data(wrap):
    return written(wrap, lambda m: m[1].running_mean.data.add_(1), batch_norm(), IMAGE)


@scenario
def buffer_assigned(wrap):
    def write(m):
        m[1].running_var = torch.full((3,), 4.0)

    return written(wrap, write, batch_norm(), IMAGE)


@scenario
def inference_module(wrap):
    with torch.inference_mode():
        module = linear()
        run = wrap(module)
        before = run(X)
        module[0].weight.add_(1)
        after = run(X)
        module[0].bias.zero_()
        return [before, after, run(X)]


@scenario
def state_dict_loaded(wrap):
    state = {name: value + 1 for name, value in linear().state_dict().items()}
    return written(wrap, lambda m: m.load_state_dict(state))


@scenario
def state_dict_assigned(wrap):
    state = {name: value + 1 for name, value in linear().state_dict().items()}
    return written(wrap, lambda m: m.load_state_dict(state, assign=True))


@scenario
def swapped(wrap):
    return written(wrap, lambda m: torch.utils.swap_tensors(m[0].weight, nn.Parameter(torch.ones(5, 6))))


@scenario
def new_parameter(wrap):
    def write(m):
        m[0].weight = nn.Parameter(torch.ones(5, 6))

    return written(wrap, write)


@scenario
def vector_to_parameters(wrap):
    def write(m):
        count = sum(p.numel() for p in m.parameters())
        nn.utils.vector_to_parameters(torch.linspace(0, 1, count), m.parameters())

    return written(wrap, write)


@scenario
def functional_call(wrap):
    module = linear()
    run = wrap(module)
    with torch.no_grad():
        results = [run(X)]
        for n in range(3):
            state = {name: value + n for name, value in module.state_dict().items()}
            results.append(torch.func.functional_call(run, state, (X,)))
        return [*results, run(X)]


@scenario
def moving_average(wrap):
    module, teacher = linear(), linear()
    run, results = wrap(teacher), []
    with torch.no_grad():
        for _ in range(8):
            for mine, theirs in zip(teacher.parameters(), module.parameters(), strict=True):
                mine.data.mul_(0.9).add_(theirs.data, alpha=0.1)
            results.append(run(X))
    return results


@scenario
def adapter_merged(wrap):
    down, up = torch.ones(2, 6) / 7, torch.ones(5, 2) / 3

    def write(m):
        m[0].weight.data += up @ down

    return written(wrap, write)


@scenario
def parametrised(wrap):
    module = nn.Sequential(nn.Linear(6, 6), nn.Tanh())
    nn.utils.parametrizations.orthogonal(module[0])
    return written(wrap, lambda m: m[0].parametrizations.weight.original.data.add_(0.3), module)


@scenario
def training_step_between(wrap):
    module = linear()
    run = wrap(module)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    results = []
    for _ in range(3):
        with torch.no_grad():
            results.append(run(X))
        loss = module(X).square().sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return results


@scenario
def gradients(wrap):
    module = linear()
    run = wrap(module)
    loss = run(X).square().sum()
    loss.backward()
    return [loss, module[0].weight.grad]


@scenario
def gradients_then_none(wrap):
    module = linear()
    run = wrap(module)
    first = run(X)
    with torch.no_grad():
        second = run(X)
    with torch.inference_mode():
        third = run(X)
    return [first, second, third, run(X)]


@scenario
def requires_grad_changed(wrap):
    module = linear()
    run = wrap(module)
    with torch.no_grad():
        first = run(X)
        module.requires_grad_(False)
        second = run(X)
    return [first, second, run(X)]


@scenario
def train_and_eval(wrap):
    module = nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.Dropout(0.0))
    run, results = wrap(module), []
    with torch.no_grad():
        for training in (False, True, False, True, False):
            module.train(training)
            results.append(run(X))
    return [*results, module[1].running_mean, module[1].num_batches_tracked]


@scenario
def regional(wrap):
    blocks = nn.Sequential(*(nn.Sequential(nn.Linear(6, 6), nn.GELU()) for _ in range(4)))
    for n, block in enumerate(blocks):
        blocks[n] = wrap(block)
    with torch.no_grad():
        return [blocks(X), blocks(X + 1), blocks(X)]


@scenario
def deep_copies(wrap):
    module = linear()
    run = wrap(module)
    with torch.no_grad():
        first = run(X)
        other = copy.deepcopy(run)
        for parameter in other.parameters():
            parameter.data.mul_(2)
        return [first, other(X), run(X), other(X)]


@scenario
def pickled(wrap):
    module = linear()
    module.compile(backend=wrap.backend, options=wrap.options) if wrap.backend else None
    with torch.no_grad():
        first = module(X)
        other = pickle.loads(pickle.dumps(module))
        return [first, other(X)]


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
def channels_last(wrap):
    module = nn.Sequential(nn.Conv2d(2, 3, 3), nn.ReLU()).to(memory_format=torch.channels_last)
    run, x = wrap(module), IMAGE.to(memory_format=torch.channels_last)
    with torch.no_grad():
        return [run(x), run(x), run(IMAGE)]


@scenario
def channels_last_sizes(wrap):
    run, results = wrap(nn.ReLU(), dynamic=True), []
    with torch.no_grad():
        for n in (4, 5, 6):
            x = torch.linspace(-1, 1, 3 * n * n * 2).reshape(2, n, n, 3).permute(0, 3, 1, 2)
            results += [run(x), run(x)]
    return results


def on_tensors(*inputs, **more):
    """A scenario that calls a function twice."""

    def register(function):
        def program(wrap):
            run = wrap(function, **more)
            with torch.no_grad():
                return [*run(*inputs), *run(*inputs)]

        SCENARIOS[function.__name__] = program
        return function

    return register


@on_tensors(X)
def transposed_results(x):
    return x.exp().t(), (x + 1).t().contiguous(), x.t() + 1


@on_tensors(X.t()[::2])
def odd_inputs(x):
    return x * 2, x.sum(0)


@on_tensors(X)
def strided_results(x):
    y = x * 2
    return y[:, ::2], y[1:3, 1:4], y.unfold(1, 3, 1), y[:, :1].expand(4, 3)


@on_tensors(X[:0])
def no_elements(x):
    return x * 2, (x + 1).t(), x.sum(0)


@on_tensors(X)
def views_of_inputs(x):
    return x[1:], x.t(), x * 2, x


@on_tensors(X[:, :1].expand(4, 3), X[0])
def expanded_inputs(x, y):
    return x + 1, y.expand(2, 6) * 2


@on_tensors(X)
def graph_break_and_view(x):
    y = (x * 2).reshape(2, 2, 6).permute(1, 0, 2)
    torch._dynamo.graph_break()
    z = (y + 1).permute(1, 0, 2)
    torch._dynamo.graph_break()
    return y.permute(1, 0, 2).view(4, 6), z.view(-1), torch.as_strided(y, (2, 3), (1, 2))


@on_tensors(X, dynamic=True)
def results_of_any_size(x):
    y = x * 2
    return y.t(), y[:, ::2], y[:, :1].expand(-1, 3), y.reshape(2, -1, 6).transpose(0, 1)


@scenario
def written_in_place(wrap):
    def function(x, y):
        x.add_(1)
        y.mul_(2)
        return x + y

    run = wrap(function)
    with torch.no_grad():
        x, y = X.clone(), X.clone().t().contiguous().t()
        return [run(x, y), x, y, run(x, y), x, y]


@scenario
def parts_of_a_buffer_written(wrap):
    def function(x):
        x[1:3].mul_(2)
        return x.sum(1)

    run, x = wrap(function), X.clone()
    with torch.no_grad():
        return [run(x), x, run(x.t()), x]


@scenario
def autocast_on_and_off(wrap):
    run, results = wrap(linear()), []
    with torch.no_grad():
        for enabled in (True, False, True):
            with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
                results.append(run(X))
    return results


@scenario
def hooks(wrap):
    module, seen = linear(), []
    module[0].register_forward_pre_hook(lambda _module, args: (args[0] * 2,))
    module[1].register_forward_hook(lambda _module, _args, result: result + 1)
    run = wrap(module)
    with torch.no_grad():
        seen.append(run(X))
        handle = module[0].register_forward_hook(lambda _module, _args, result: result * 3)
        seen.append(run(X))
        handle.remove()
        return [*seen, run(X)]


@scenario
def tied_weights(wrap):
    module = nn.Sequential(nn.Embedding(7, 6), nn.Linear(6, 7, bias=False))
    module[1].weight = module[0].weight
    return written(wrap, lambda m: m[0].weight.data.mul_(2), module, torch.tensor([1, 6, 0]))


@scenario
def other_sizes(wrap):
    run = wrap(linear())
    with torch.no_grad():
        return [run(X[:n]) for n in (4, 2, 3, 1, 4)]


@scenario
def weights_in_a_flat_buffer(wrap):
    flat, module = torch.linspace(-1, 1, 35), linear()
    module[0].weight.data = flat[:30].view(5, 6)
    module[0].bias.data = flat[30:]
    return written(wrap, lambda _: flat.mul_(2), module)


@scenario
def data_types_changed(wrap):
    module = linear()
    run = wrap(module)
    with torch.no_grad():
        first = run(X)
        module.to(torch.float64)
        second = run(X.double())
        module.to(torch.float32)
        return [first, second, run(X)]


@scenario
def attention_of_views(wrap):
    def function(x):
        q, k, v = x.view(2, 4, 3, 2, 3).permute(2, 0, 3, 1, 4)
        return functional.scaled_dot_product_attention(q, k, v).transpose(1, 2)

    run, x = wrap(function), torch.linspace(-1, 1, 144).reshape(2, 4, 18)
    with torch.no_grad():
        return [run(x), run(x).reshape(2, 4, 6)]


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
def half_the_bits(wrap):
    module = linear()
    run = wrap(module)
    with torch.no_grad():
        first = run(X)
        module.to(torch.bfloat16)
        return [first, run(X.bfloat16()), module(X.bfloat16())]


@scenario
def one_row_of_a_table(wrap):
    def write(m):
        m[0].weight.data[3] = 2.0

    return written(wrap, write, nn.Sequential(nn.Embedding(7, 6)), torch.tensor([3, 6, 0]))


@scenario
def weight_norm(wrap):
    module = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(6, 5)))
    return written(wrap, lambda m: m[0].parametrizations.weight.original0.data.mul_(3), module)


@scenario
def state_of_a_compiled_module(wrap):
    module, other = linear(), linear()
    run = wrap(module)
    with torch.no_grad():
        first = run(X)
        state = {name.removeprefix("_orig_mod."): value for name, value in run.state_dict().items()}
        other.load_state_dict({name: value * 2 for name, value in state.items()})
        module.load_state_dict(other.state_dict())
        return [first, run(X), other(X)]


@scenario
def wrong_arguments(wrap):
    run, said = wrap(nn.Embedding(7, 6)), []
    with torch.no_grad():
        first = run(torch.tensor([1, 2]))
        for wrong in (torch.tensor([7]), torch.tensor([1.0])):
            try:
                run(wrong)
            except (IndexError, RuntimeError) as error:
                said.append(isinstance(error, IndexError))
        return [first, torch.tensor(said), run(torch.tensor([6]))]
