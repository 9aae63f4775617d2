"""Where elements lie: strides, views, writes into arguments."""

import torch
from torch import nn
from torch.nn import functional

from torch_backend.scenarios.program import IMAGE, X, on_tensors, scenario


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
def attention_of_views(wrap):
    def function(x):
        q, k, v = x.view(2, 4, 3, 2, 3).permute(2, 0, 3, 1, 4)
        return functional.scaled_dot_product_attention(q, k, v).transpose(1, 2)

    run, x = wrap(function), torch.linspace(-1, 1, 144).reshape(2, 4, 18)
    with torch.no_grad():
        return [run(x), run(x).reshape(2, 4, 6)]


@scenario
def results_are_the_callers(wrap):
    """Writes to results and inputs change no later and no earlier call."""
    run, x = wrap(nn.Sequential(nn.Linear(6, 5), nn.ReLU())), X.clone()
    with torch.no_grad():
        first = run(x)
        kept = first.clone()
        second = run(x)
        first.zero_()
        x.mul_(2)
        return [first, kept, second, run(x), run(X)]


@scenario
def the_input_itself(wrap):
    run = wrap(lambda x, y: (x, y.view(-1), x + y, y[0]))
    with torch.no_grad():
        x, y = X.clone(), X.clone()
        a, b, c, d = run(x, y)
        same = [a is x, b.data_ptr() == y.data_ptr(), d.data_ptr() == y.data_ptr()]
        y.add_(1)
        return [a, b, c, d, torch.tensor(same)]


@scenario
def one_tensor_twice(wrap):
    def function(x, y):
        x.add_(1)
        return x * y, y.sum(0)

    run = wrap(function)
    with torch.no_grad():
        a, b = X.clone(), X.clone()
        return [*run(a, a), a, *run(b, b[:]), b]


@scenario
def overlapping_arguments(wrap):
    def function(x, y):
        x.mul_(2)
        return y + 1, x + 0

    run = wrap(function)
    with torch.no_grad():
        flat = torch.linspace(-1, 1, 12)
        return [*run(flat[:8], flat[4:]), flat, *run(flat[:4], flat[8:]), flat]


@scenario
def results_given(wrap):
    def function(x, out):
        torch.add(x, 1, out=out)
        return torch.tanh(out)

    run = wrap(function)
    with torch.no_grad():
        out = torch.empty(4, 6)
        return [run(X, out), out, run(X + 1, out), out]


@on_tensors(torch.complex(X, X + 1).conj().imag, torch.complex(X, X + 1).conj(), leaves="resolve_conj")
def stored_negated(x, y):
    return x * 2, x.sum(0), torch.view_as_real(y * 2), y.real + 1


@on_tensors(torch.complex(X, X + 1), torch.view_as_complex(X.reshape(4, 3, 2)).clone(), leaves="complex")
def complex_numbers(x, y):
    return x * 2 + 1, (x.abs() + 1).log(), y.exp().real, (x[:, :3] * y).conj() + 0


@scenario
def results_share_memory(wrap):
    """Writes to a result are seen in those that are views of the same tensor, and in inputs."""

    def function(x, n):
        y = torch.tanh(x) * 2
        a, b, c = y.split(2, 1)
        return y, y[n], y.t(), a, c, x[n:], x.t() * 1, b * 2

    run, results = wrap(function), []
    with torch.no_grad():
        for n in (1, 2, 3):
            x = X.clone()
            y, row, turned, a, c, part, *more = run(x, n)
            row.add_(5), turned[0].mul_(2), a.neg_(), part.zero_()
            results += [y, row, turned, a, c, part, x, *more]
    return results


@on_tensors(X.flatten()[3:15], X.flatten()[5:23].view(3, 6))
def not_at_the_beginning(x, y):
    return x.view(2, 6) * y[:2], y.as_strided((2, 3), (6, 2)) + 1, x[1:] - x[:-1]


@on_tensors(torch.linspace(0, 1, 120).reshape(2, 3, 4, 5).to(memory_format=torch.channels_last))
def orders_of_memory(x):
    y = torch.relu(x - 0.5)
    return (
        y,
        y.contiguous(),
        torch.empty_like(y).copy_(y),
        y.permute(0, 2, 3, 1),
        y.flatten(2),
        torch.cat([y, y], 1),
        y[:, 1:],
        y.clone(memory_format=torch.contiguous_format),
    )


@on_tensors(torch.linspace(0, 1, 240).reshape(2, 3, 2, 4, 5).to(memory_format=torch.channels_last_3d))
def orders_of_volumes(x):
    return x * 2, functional.avg_pool3d(x, 2), x.mean((2, 3, 4), keepdim=True) - x


@scenario
def parts_written_by_slices(wrap):
    def function(x, y):
        z = torch.zeros(5, 6)
        z[1:] = x
        z[:, ::2] += 1
        z[0, 1:4] = y
        x[:, 0] = z[1:, 1]
        return z, z.flip(0)

    run = wrap(function)
    with torch.no_grad():
        x = X.clone()
        return [*run(x, torch.ones(3)), x, *run(x, 2.0), x]


@scenario
def one_place_for_all_calls(wrap):
    """Inputs that are written between calls, as a loop of inference does."""
    run, place, results = wrap(nn.Linear(6, 3)), torch.empty(4, 6), []
    with torch.no_grad():
        for n in range(3):
            place.copy_(X + n)
            results.append(run(place))
    return results
