"""Sizes, numbers and structures of arguments that vary."""

import collections
import dataclasses

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from torch_backend.scenarios.program import X, linear, scenario


@scenario
def other_sizes(wrap):
    run = wrap(linear())
    with torch.no_grad():
        return [run(X[:n]) for n in (4, 2, 3, 1, 4)]


def called(wrap, function, *calls, **more):
    """The results of calls, each a tuple of arguments."""
    run, results = wrap(function, **more), []
    with torch.no_grad():
        for call in calls:
            made = run(*call)
            results += made if isinstance(made, tuple) else [made]
    return results


@scenario
def marked_sizes(wrap):
    inputs = [X[:n].clone() for n in (4, 2, 3)]
    for each in inputs:
        torch._dynamo.mark_dynamic(each, 0)
    return called(wrap, linear(), *((each,) for each in inputs))


@scenario
def marked_ranges(wrap):
    inputs = [X[:n].clone() for n in (4, 2, 3)]
    for each in inputs:
        torch._dynamo.mark_dynamic(each, 0, min=2, max=64)
        torch._dynamo.mark_static(each, 1)
    return called(wrap, lambda x: x.softmax(0).cumsum(0), *((each,) for each in inputs))


@scenario
def sizes_that_may_vary(wrap):
    inputs = [X[:n].clone() for n in (4, 2, 3, 1)]
    for each in inputs:
        torch._dynamo.maybe_mark_dynamic(each, 0)
    return called(wrap, lambda x: (x - x.mean(0)).reshape(-1, 3), *((each,) for each in inputs))


@scenario
def sizes_never_vary(wrap):
    return called(wrap, linear(), *((X[:n],) for n in (4, 2, 3, 1)), dynamic=False)


@scenario
def nothing_then_something(wrap):
    return called(wrap, linear(), *((X[:n],) for n in (0, 4, 1, 0, 2)))


@scenario
def two_sizes(wrap):
    tensors = [
        (torch.linspace(-1, 1, a * b).reshape(a, b), torch.linspace(0, 1, b)) for a, b in ((3, 4), (5, 2), (2, 6))
    ]
    return called(wrap, lambda x, y: (x * y, x.t() @ x, (x + y).flatten()), *tensors)


@scenario
def equal_sizes_that_part(wrap):
    square, other = X[:, :4].contiguous(), X[:3]
    return called(wrap, lambda x: x.softmax(-1) + x.shape[0] / x.shape[1], (square,), (other,), (X,), (square,))


@scenario
def integers_that_vary(wrap):
    def function(x, n):
        return x[:, :n] * n, x.narrow(1, n - 1, 2), x.roll(n, 1)

    return called(wrap, function, *((X, n) for n in (1, 2, 3, 5, 4)))


@scenario
def fractions_that_vary(wrap):
    def function(x, scale):
        return torch.tanh(x * scale) + scale, x**scale

    return called(wrap, function, *((X.abs(), n) for n in (0.5, 2.0, 3.25, -1.0, 0.0, float("inf"))))


@scenario
def flags_and_texts(wrap):
    def function(x, flag, text, other=None):
        y = torch.sin(x) if flag else torch.cos(x)
        y = y * 2 if text == "twice" else y
        return y if other is None else y + other

    return called(wrap, function, (X, True, "twice"), (X, False, "once"), (X, True, "once", X), (X, True, "twice"))


@scenario
def types_as_arguments(wrap):
    def function(x, dtype):
        return (x * 3).to(dtype), x.sum(dtype=dtype)

    return called(wrap, function, *((X, each) for each in (torch.float64, torch.int32, torch.bfloat16, torch.float16)))


@scenario
def types_of_inputs(wrap):
    calls = [(X.to(each),) for each in (torch.float32, torch.float64, torch.int64, torch.bfloat16, torch.bool)]
    return called(wrap, lambda x: (x * 2, x.sum(0), x + 0.5), *calls)


@scenario
def numbers_without_dimensions(wrap):
    calls = [(torch.tensor(n), X) for n in (2.0, 3, True)] + [(torch.tensor(2.0, dtype=torch.float64), X)]
    return called(wrap, lambda s, x: (x * s, s * 2, s / 3, x.max() + s), *calls)


@scenario
def lists_of_any_length(wrap):
    calls = [(list(X[:n]),) for n in (2, 3, 4, 1)]
    return called(wrap, lambda rows: torch.stack(rows).tanh().sum(0) * len(rows), *calls)


@scenario
def dictionaries(wrap):
    def function(given):
        made = {name: torch.tanh(value) for name, value in given.items()}
        made["sum"] = sum(made.values())
        return tuple(made[name] for name in sorted(made))

    return called(wrap, function, ({"b": X, "a": X + 1},), ({"a": X, "b": X + 1},), ({"c": X},))


@dataclasses.dataclass
class Output:
    logits: torch.Tensor
    hidden: tuple[torch.Tensor, ...] | None = None
    count: int = 0


@scenario
def structures_as_results(wrap):
    Pair = collections.namedtuple("Pair", "left right")

    def function(x):
        y = torch.tanh(x)
        return Output(y, (x, y * 2), x.shape[0]), Pair(y, None), {"n": [y + 1, 3]}, y.shape

    run, results = wrap(function), []
    with torch.no_grad():
        for n in (4, 3, 2):
            output, pair, more, shape = run(X[:n])
            results += [output.logits, *output.hidden, torch.tensor(output.count), pair.left, more["n"][0]]
            results.append(torch.tensor([pair.right is None, more["n"][1] == 3, tuple(shape) == (n, 6)]))
    return results


@scenario
def named_and_default_arguments(wrap):
    def function(x, *more, scale=2.0, bias=None, **others):
        y = x * scale + sum(more)
        y = y if bias is None else y + bias
        return torch.tanh(y) + sum(others.values())

    run = wrap(function)
    with torch.no_grad():
        return [run(X), run(X, X), run(X, 1, X, bias=X[0]), run(X, scale=X), run(x=X, a=X, b=2)]


@scenario
def arrays_as_arguments(wrap):
    """A function of NumPy that PyTorch traces."""
    run = wrap(lambda a, b: np.tanh(a * 2).sum(axis=0) + b)
    first, second = (run(X.numpy() * n, np.float32(n)) for n in (1, 2))
    return [torch.from_numpy(first), torch.from_numpy(second)]


@scenario
def more_values_than_are_compiled(wrap):
    """Dynamo gives a function up after so many recompilations."""

    def function(x, name):
        return torch.tanh(x) * len(name) + (1 if name.startswith("a") else 0)

    names = ["a", "bb", "acc", "dddd", "aeeeee", "f", "gg", "ahh", "i", "jjj", "kk", "all"]
    return called(wrap, function, *((X, name) for name in names))


@scenario
def results_of_any_length(wrap):
    """The size of a result is data."""
    return called(wrap, lambda x: (torch.tanh(x)[x > 0.1] * 2, (x * 3).round().unique()), (X,), (X * 2,), (X - 2,))


@scenario
def padded_to_a_multiple(wrap):
    def function(x):
        padded = functional.pad(x, (0, -x.shape[1] % 4))
        return padded.unflatten(1, (-1, 4)).amax(-1)

    return called(wrap, function, *((X[:, :n],) for n in (6, 5, 4, 3)), dynamic=True)


@scenario
def lazy_module(wrap):
    module = nn.Sequential(nn.LazyLinear(5), nn.ReLU())
    with torch.no_grad():
        module(X)
        return [wrap(module)(X), wrap(module)(X[:2])]
