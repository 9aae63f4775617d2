"""What modules keep from call to call, and what is put in the place of their parts."""

import torch
from torch import nn
from torch.nn.utils import parametrizations, parametrize, prune

from torch_backend.scenarios.program import IMAGE, X, batch_norm, linear, scenario, written


class Adapted(nn.Module):
    """A layer with an adapter of low rank, which is merged or computed beside it."""

    def __init__(self):
        super().__init__()
        self.base, self.merged = nn.Linear(6, 5), False
        self.down, self.up = nn.Parameter(torch.randn(2, 6)), nn.Parameter(torch.randn(5, 2))

    def forward(self, x):
        y = self.base(x)
        return y if self.merged else y + x @ self.down.t() @ self.up.t()

    def merge(self, merged):
        if merged != self.merged:
            self.base.weight.data += (1 if merged else -1) * self.up.data @ self.down.data
            self.merged = merged


@scenario
def adapter_merged_and_unmerged(wrap):
    module = Adapted()
    run, results = wrap(module), []
    with torch.no_grad():
        for merged in (False, True, False, True, True, False):
            module.merge(merged)
            results.append(run(X))
    return results


@scenario
def adapters_switched(wrap):
    """Several adapters in the place of one, one after the other."""
    module = Adapted()
    adapters = [(torch.randn(2, 6), torch.randn(5, 2)) for _ in range(3)]
    run, results = wrap(module), []
    with torch.no_grad():
        for n in (0, 1, 2, 0, 1, 1):
            module.down.data, module.up.data = adapters[n]
            results.append(run(X))
    return results


@scenario
def averaged_model(wrap):
    module = linear()
    averaged = torch.optim.swa_utils.AveragedModel(module)
    run, results = wrap(averaged), []
    for _ in range(3):
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.add_(0.5)
        averaged.update_parameters(module)
        with torch.no_grad():
            results.append(run(X))
    return results


@scenario
def statistics_of_the_data(wrap):
    module = batch_norm()
    run = wrap(module)
    with torch.no_grad():
        first = run(IMAGE)
        torch.optim.swa_utils.update_bn([IMAGE, IMAGE * 3], module)
        return [first, run(IMAGE)]


@scenario
def pruned(wrap):
    module = linear()
    run = wrap(module)
    with torch.no_grad():
        results = [run(X)]
        prune.l1_unstructured(module[0], "weight", amount=0.5)
        results.append(run(X))
        prune.remove(module[0], "weight")
        return [*results, run(X)]


@scenario
def spectral_norm(wrap):
    module = nn.Sequential(parametrizations.spectral_norm(nn.Linear(6, 5))).eval()
    return written(wrap, lambda m: m[0].parametrizations.weight.original.data.mul_(2), module)


@scenario
def parametrisation_kept_and_removed(wrap):
    module = nn.Sequential(nn.Linear(6, 6))

    class Symmetric(nn.Module):
        def forward(self, weight):
            return weight.triu() + weight.triu(1).t()

    parametrize.register_parametrization(module[0], "weight", Symmetric())
    run = wrap(module)
    with torch.no_grad():
        results = [run(X)]
        module[0].parametrizations.weight.original.mul_(2)
        results.append(run(X))
        parametrize.remove_parametrizations(module[0], "weight")
        return [*results, run(X)]


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.register_buffer("mean", torch.zeros(6), persistent=False)

    def forward(self, x):
        self.calls += 1
        self.mean.lerp_(x.mean(0), 1 / self.calls)
        return x - self.mean


@scenario
def buffers_that_calls_write(wrap):
    module = Counting()
    run, results = wrap(module), []
    with torch.no_grad():
        for n in range(4):
            results += [run(X + n), module.calls.clone(), module.mean.clone()]
        module.mean.data.zero_()
        module.calls.fill_(3)
        return [*results, run(X), module.mean]


class Cached(nn.Module):
    """Attention over a cache of a fixed length."""

    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(6, 18)
        self.register_buffer("keys", torch.zeros(8, 6))
        self.register_buffer("values", torch.zeros(8, 6))

    def forward(self, x, place):
        q, k, v = self.qkv(x).chunk(3, -1)
        self.keys[place], self.values[place] = k, v
        mask = torch.arange(8) <= place
        return ((q @ self.keys.t()).masked_fill(~mask, -torch.inf)).softmax(-1) @ self.values


@scenario
def static_cache(wrap):
    module = Cached()
    run = wrap(module)
    with torch.no_grad():
        results = [run(X[n : n + 1], torch.tensor([n])) for n in range(4)]
        module.keys.zero_(), module.values.zero_()
        return [*results, run(X[:1], torch.tensor([0])), module.keys]


@scenario
def cache_at_a_number(wrap):
    """The place is a Python integer, which varies."""
    module = Cached()
    run = wrap(module)
    with torch.no_grad():
        results = [run(X[n % 4], n) for n in range(5)]
    return [*results, module.values]


@scenario
def attribute_assigned_in_a_call(wrap):
    class Keeps(nn.Module):
        last = None

        def forward(self, x):
            y = torch.tanh(x) if self.last is None else torch.tanh(x) + self.last
            self.last = y * 2
            return y

    module = Keeps()
    run, results = wrap(module), []
    with torch.no_grad():
        for n in range(3):
            results += [run(X + n), module.last]
    return results


@scenario(leaves="aten.embedding_renorm")
def rows_renormalised(wrap):
    """An embedding that writes to its own table."""
    module = nn.Embedding(7, 6, max_norm=1.0)
    run = wrap(module)
    with torch.no_grad():
        first = run(torch.tensor([1, 2]))
        module.weight.mul_(3)
        return [first, run(torch.tensor([2, 5])), module.weight]


@scenario
def module_replaced(wrap):
    def write(m):
        m[0] = nn.Linear(6, 5)
        m[1] = nn.Sigmoid()

    return written(wrap, write)


@scenario
def layers_added_and_removed(wrap):
    module = nn.Sequential(nn.Linear(6, 6), nn.ReLU())
    run = wrap(module)
    with torch.no_grad():
        results = [run(X)]
        module.append(nn.Linear(6, 3))
        results.append(run(X))
        del module[0]
        return [*results, run(X)]


@scenario
def buffer_replaced(wrap):
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("scale", torch.tensor([2.0]))

        def forward(self, x):
            return torch.sin(x) * self.scale

    def write(m):
        del m.scale
        m.register_buffer("scale", torch.linspace(0, 1, 6))

    return written(wrap, write, Scaled())


@scenario
def numbers_of_a_module(wrap):
    class Scaled(nn.Module):
        scale, shift = 2.0, 1

        def forward(self, x):
            return torch.sin(x) * self.scale + self.shift

    module = Scaled()
    run, results = wrap(module), []
    with torch.no_grad():
        for n in range(12):
            module.scale, module.shift = n / 2, n
            results.append(run(X))
    return results


@scenario
def meta_module_filled(wrap):
    state = linear().state_dict()
    with torch.device("meta"):
        module = linear()
    module.load_state_dict(state, assign=True)
    run = wrap(module)
    with torch.no_grad():
        first = run(X)
        module.to_empty(device="cpu").load_state_dict({name: value * 2 for name, value in state.items()})
        return [first, run(X)]


@scenario
def lists_of_parameters(wrap):
    class Lists(nn.Module):
        def __init__(self):
            super().__init__()
            self.rows = nn.ParameterList([torch.randn(6) for _ in range(3)])
            self.heads = nn.ModuleDict({"a": nn.Linear(6, 2), "b": nn.Linear(6, 3)})

        def forward(self, x, head):
            for row in self.rows:
                x = torch.tanh(x * row)
            return self.heads[head](x)

    module = Lists()
    run = wrap(module)
    with torch.no_grad():
        results = [run(X, "a"), run(X, "b")]
        module.rows.append(nn.Parameter(torch.ones(6) / 2))
        module.heads["a"].weight.data.mul_(2)
        return [*results, run(X, "a"), run(X, "b")]


@scenario
def shared_by_two_models(wrap):
    trunk = linear()
    first, second = (wrap(nn.Sequential(trunk, nn.Linear(5, n))) for n in (2, 3))
    with torch.no_grad():
        results = [first(X), second(X)]
        trunk[0].weight.data.neg_()
        return [*results, first(X), second(X)]
