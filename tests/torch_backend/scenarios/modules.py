"""Modules, and how they are compiled."""

import functools

import torch
from torch import nn

from torch_backend.scenarios.program import X, linear, scenario, written


@scenario
def regional(wrap):
    blocks = nn.Sequential(*(nn.Sequential(nn.Linear(6, 6), nn.GELU()) for _ in range(4)))
    for n, block in enumerate(blocks):
        blocks[n] = wrap(block)
    with torch.no_grad():
        return [blocks(X), blocks(X + 1), blocks(X)]


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
def equal_blocks_in_place(wrap):
    blocks = nn.Sequential(*(nn.Sequential(nn.Linear(6, 6), nn.GELU()) for _ in range(3)))
    for block in blocks:
        wrap.in_place(block)
    with torch.no_grad():
        first = blocks(X)
        blocks[1][0].weight.data.mul_(2)
        return [first, blocks(X), blocks(X[:2])]


@scenario
def method_compiled(wrap):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = linear()

        def forward(self, x):
            return self.encode(x) + 1

        def encode(self, x):
            return self.body(x)

    module = Model()
    module.encode = wrap(module.encode)
    with torch.no_grad():
        first = module(X)
        module.body[0].bias.data.add_(1)
        return [first, module(X), module.encode(X)]


@scenario
def forward_replaced(wrap):
    module = linear()
    module.forward = wrap(module.forward)
    return written(wrap, lambda m: m[0].weight.mul_(2), module)


@scenario
def partial_function(wrap):
    module = linear()
    run = wrap(functools.partial(torch.func.functional_call, module))
    with torch.no_grad():
        state = dict(module.named_parameters())
        return [run(state, (X,)), run({name: value * 2 for name, value in state.items()}, (X,))]


@scenario
def compiled_in_a_compiled_one(wrap):
    inner = wrap(linear())
    outer = wrap(lambda x: inner(x * 2) + inner(x))
    with torch.no_grad():
        return [outer(X), inner(X), outer(X)]


@scenario
def compiled_twice(wrap):
    module = linear()
    first, second = wrap(module), wrap(module, dynamic=True)
    with torch.no_grad():
        results = [first(X), second(X), second(X[:2])]
        module[0].weight.data.neg_()
        return [*results, first(X), second(X)]


@scenario
def region_of_a_model(wrap):
    blocks = nn.ModuleList([nn.Linear(6, 6) for _ in range(3)])

    @torch.compiler.nested_compile_region
    def region(block, x):
        return torch.relu(block(x)) + x

    def function(x):
        for block in blocks:
            x = region(block, x)
        return x

    run = wrap(function)
    with torch.no_grad():
        first = run(X)
        blocks[1].weight.data.mul_(2)
        return [first, run(X)]


@scenario
def hooks_of_all_modules(wrap):
    handle = nn.modules.module.register_module_forward_hook(
        lambda module, _args, result: result * 2 if isinstance(module, nn.Linear) else None
    )
    run = wrap(linear())
    with torch.no_grad():
        try:
            first = run(X)
        finally:
            handle.remove()
        return [first, run(X)]


@scenario
def hooks_with_names(wrap):
    class Scaled(nn.Module):
        def forward(self, x, *, scale=1.0):
            return torch.tanh(x) * scale

    module = Scaled()
    module.register_forward_pre_hook(lambda _module, args, named: (args, {"scale": 3.0, **named}), with_kwargs=True)
    run = wrap(module)
    with torch.no_grad():
        return [run(X), run(X, scale=2.0)]


@scenario
def activations_collected(wrap):
    """A hook that keeps what flows by, as extraction of features does."""
    module, kept = nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 2)), []
    module[1].register_forward_hook(lambda _module, _args, result: kept.append(result))
    run = wrap(module)
    with torch.no_grad():
        return [run(X), run(X + 1), *kept]


@scenario
def gradients_of_inputs_hooked(wrap):
    module, seen = linear(), []
    module.register_full_backward_hook(lambda _module, given, _made: seen.append(given[0]))
    run, x = wrap(module), X.clone().requires_grad_()
    with torch.no_grad():
        first = run(X)
    run(x).sum().backward()
    return [first, x.grad, *seen]


@scenario
def stateless_ensemble(wrap):
    modules = [linear() for _ in range(3)]
    parameters, buffers = torch.func.stack_module_state(modules)
    base = linear()

    def function(parameters, buffers, x):
        return torch.vmap(lambda p, b: torch.func.functional_call(base, (p, b), (x,)))(parameters, buffers)

    run = wrap(function)
    with torch.no_grad():
        return [run(parameters, buffers, X), run(parameters, buffers, X[:2])]


@scenario
def recurrence_by_hand(wrap):
    cell = nn.GRUCell(6, 5)

    def function(x):
        h = x.new_zeros(5)
        for row in x:
            h = cell(row, h)
        return h

    run = wrap(function)
    with torch.no_grad():
        return [run(X), run(X[:2])]
