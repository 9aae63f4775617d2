"""Modes, gradients and types."""

import torch
from torch import nn

from torch_backend.scenarios.program import X, linear, scenario


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
def autocast_on_and_off(wrap):
    run, results = wrap(linear()), []
    with torch.no_grad():
        for enabled in (True, False, True):
            with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
                results.append(run(X))
    return results


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
def half_the_bits(wrap):
    module = linear()
    run = wrap(module)
    with torch.no_grad():
        first = run(X)
        module.to(torch.bfloat16)
        return [first, run(X.bfloat16()), module(X.bfloat16())]


@scenario
def modes_in_turn(wrap):
    """A model under each mode, and inputs made under one for another."""
    module = linear()
    run, results = wrap(module), []
    with torch.inference_mode():
        made = X * 1
    for mode in (torch.no_grad, torch.inference_mode, torch.enable_grad, torch.no_grad):
        with mode():
            results += [run(X), run(made.clone())]
    with torch.no_grad():
        return [*results, run(made), torch.tensor(run(made).is_inference())]


@scenario
def no_gradients_inside(wrap):
    """A function that turns gradients off itself."""
    weight = torch.linspace(-1, 1, 36).reshape(6, 6).requires_grad_()

    def function(x):
        with torch.no_grad():
            y = torch.tanh(x @ weight)
        return y + 1

    run = wrap(function)
    return [run(X), run(X), torch.tensor(run(X).requires_grad)]


@scenario
def inputs_with_gradients(wrap):
    run, x = wrap(lambda x: torch.tanh(x) * 2), X.clone().requires_grad_()
    with torch.no_grad():
        first = run(x)
    second = run(x)
    second.sum().backward()
    return [first, second, x.grad, torch.tensor([first.requires_grad, second.requires_grad])]


@scenario
def switched_inside(wrap):
    def function(x, weight):
        y = x @ weight
        with torch.set_grad_enabled(False):
            z = torch.relu(y)
        return torch.tanh(z + y)

    run, weight = wrap(function), torch.ones(6, 5, requires_grad=True)
    made = run(X, weight)
    made.sum().backward()
    with torch.no_grad():
        return [made, weight.grad, run(X, weight)]


@scenario
def autocast_inside(wrap):
    module = linear()

    def function(x):
        with torch.autocast("cpu", torch.bfloat16):
            y = module(x)
        return y, y.float() @ torch.ones(5, 2), torch.nn.functional.layer_norm(y, (5,))

    run = wrap(function)
    with torch.no_grad():
        return [*run(X), *run(X)]


@scenario
def autocast_and_written(wrap):
    module = nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.Linear(8, 3))
    run, results = wrap(module), []
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        for _ in range(3):
            results.append(run(X))
            module[0].weight.data.mul_(2)
    return results


@scenario
def default_types(wrap):
    run, results = wrap(lambda x: torch.arange(3) * 0.5 + torch.ones(3) * x.sum()), []
    try:
        with torch.no_grad():
            for dtype in (torch.float32, torch.float64, torch.float32):
                torch.set_default_dtype(dtype)
                results.append(run(X))
    finally:
        torch.set_default_dtype(torch.float32)
    return results


@scenario
def default_devices(wrap):
    run = wrap(lambda x: torch.ones(6) * x + torch.zeros(x.shape[0], 1))
    with torch.no_grad():
        first = run(X)
        with torch.device("cpu"):
            second = run(X)
        return [first, second, run(X)]


@scenario
def deterministic(wrap):
    run = wrap(lambda x: torch.zeros(3, 6).index_add(0, torch.tensor([0, 2, 0, 1]), x).cumsum(0))
    torch.use_deterministic_algorithms(True)
    try:
        with torch.no_grad():
            return [run(X), run(X + 1)]
    finally:
        torch.use_deterministic_algorithms(False)


@scenario(leaves="keeps|PyTorch runs")
def random_numbers(wrap):
    """Those that eager PyTorch draws."""
    module = nn.Sequential(nn.Linear(6, 5), nn.Dropout(0.5), nn.Tanh()).train()
    run, results = wrap(lambda x: module(x) + torch.rand(5)), []
    with torch.no_grad():
        for seed in (1, 2, 1):
            torch.manual_seed(seed)
            results.append(run(X))
    return results


@scenario
def profiled(wrap):
    run = wrap(linear())
    with torch.no_grad():
        first = run(X)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
            second = run(X)
        with torch.autograd.profiler.record_function("step"):
            return [first, second, run(X)]


@scenario
def anomalies_detected(wrap):
    run = wrap(linear())
    with torch.autograd.detect_anomaly(check_nan=False), torch.no_grad():
        return [run(X), run(X)]


@scenario
def attention_of_one_kind(wrap):
    from torch.nn.attention import SDPBackend, sdpa_kernel

    def function(x):
        q = x.reshape(1, 2, 4, 3)
        return torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)

    run, results = wrap(function), []
    with torch.no_grad():
        for kind in (SDPBackend.MATH, SDPBackend.FLASH_ATTENTION):
            with sdpa_kernel(kind):
                results.append(run(X))
    return [*results, run(X)]


@scenario
def compiled_optimiser(wrap):
    module = linear()
    optimizer = torch.optim.Adam(module.parameters(), lr=0.1)
    step = wrap(optimizer.step)
    results = []
    for _ in range(3):
        optimizer.zero_grad()
        module(X).square().sum().backward()
        step()
        results += [each.detach().clone() for each in module.parameters()]
    return results
