"""Transforms of functions, operators of others, and classes of tensors."""

import torch
from torch import nn

from torch_backend.scenarios.program import X, linear, on_tensors, scenario


@scenario
def mapped_inside(wrap):
    module = linear()
    run = wrap(torch.vmap(module))
    with torch.no_grad():
        return [run(X), run(X[:2])]


@scenario
def mapped_outside(wrap):
    run = wrap(lambda x: torch.tanh(x) * x.sum())
    with torch.no_grad():
        return [torch.vmap(run)(X), run(X)]


@on_tensors(X, X[0])
def mapped_over_dimensions(x, y):
    product = torch.vmap(torch.vmap(lambda a, b: (a * b).sin(), in_dims=(0, None)), in_dims=(None, 0))
    return product(X[:, 0], y), torch.vmap(torch.dot, in_dims=(0, None))(x, y)


@scenario
def gradient_inside(wrap):
    def function(x):
        return torch.func.grad(lambda y: torch.tanh(y).square().sum())(x)

    run = wrap(function)
    with torch.no_grad():
        first = run(X)
    return [first, run(X), run(X[:2])]


@scenario(leaves="_new_zeros_with_same_feature_meta")
def jacobians(wrap):
    def function(x):
        return torch.func.jacrev(torch.tanh)(x), torch.func.jvp(torch.sin, (x,), (x + 1,))[1]

    run = wrap(function)
    with torch.no_grad():
        return [*run(X[0]), *run(X[1])]


@scenario
def gradient_by_the_tape(wrap):
    """`torch.autograd.grad` inside of what is compiled."""

    def function(x):
        y = x.detach().requires_grad_()
        made = torch.tanh(y).square().sum()
        return torch.autograd.grad(made, y)[0]

    run = wrap(function)
    return [run(X), run(X + 1)]


@scenario(leaves="tilec_scenarios.doubled")
def own_operator(wrap):
    name = "tilec_scenarios::doubled"

    @torch.library.custom_op(name, mutates_args=())
    def doubled(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    doubled.register_fake(torch.empty_like)
    run = wrap(lambda x: torch.tanh(doubled(torch.sin(x) + 1)) * 3 + 1)
    with torch.no_grad():
        return [run(X), run(X[:2]), run(X.t())]


@scenario
def own_function_of_gradients(wrap):
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 3

    run, x = wrap(lambda x: Doubled.apply(torch.sin(x)) + 1), X.clone().requires_grad_()
    with torch.no_grad():
        first = run(X)
    run(x).sum().backward()
    return [first, x.grad]


@scenario
def parameters_as_arguments(wrap):
    run = wrap(lambda x, weight: torch.relu(x @ weight))
    with torch.no_grad():
        weight = nn.Parameter(torch.linspace(-1, 1, 12).reshape(6, 2))
        first = run(X, weight)
        weight.data.mul_(2)
        return [first, run(X, weight), run(X, weight.detach())]


@scenario(leaves="cond: ")
def conditions_and_loops(wrap):
    def function(x):
        y = torch.cond(x.sum() > 1, lambda z: torch.sin(z) + 1, lambda z: torch.cos(z) * 2, (x,))
        return y * 2

    run = wrap(function)
    with torch.no_grad():
        return [run(X), run(X + 1)]


@scenario(leaves="flex_attention")
def flexible_attention(wrap):
    from torch.nn.attention.flex_attention import flex_attention

    x = torch.linspace(-1, 1, 128).reshape(1, 2, 16, 4)

    def function(x):
        return flex_attention(x, x * 2, x + 1, score_mod=lambda score, b, h, q, k: score + (q - k) * 0.1)

    run = wrap(function)
    with torch.no_grad():
        return [run(x), run(x + 1)]


@scenario
def tensors_of_zeros(wrap):
    run = wrap(lambda x, y: (x @ y) + 1)
    with torch.no_grad():
        return [run(X.relu().to_sparse(), X.t()), run(X, X.t())]


@scenario
def rows_of_several_lengths(wrap):
    rows = torch.nested.nested_tensor([X[:2], X[:3]], layout=torch.jagged)
    run = wrap(lambda x: torch.sin(x) * 2)
    with torch.no_grad():
        return [run(rows).values(), run(X)]


@scenario(leaves="logcumsumexp")
def scanned(wrap):
    run = wrap(lambda x: torch.cumsum(x, 0) + torch.cumprod(x, 1) + torch.logcumsumexp(x, 0))
    with torch.no_grad():
        return [run(X), run(X[:2])]
