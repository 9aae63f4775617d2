"""Writes to weights, through every door that PyTorch has."""

import ctypes
import tempfile

import numpy as np
import torch
from torch import nn

from torch_backend.scenarios.program import IMAGE, X, batch_norm, linear, scenario, written


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


@scenario(leaves="matrix_exp")
def parametrised(wrap):
    module = nn.Sequential(nn.Linear(6, 6), nn.Tanh())
    nn.utils.parametrizations.orthogonal(module[0])
    return written(wrap, lambda m: m[0].parametrizations.weight.original.data.add_(0.3), module)


@scenario
def tied_weights(wrap):
    module = nn.Sequential(nn.Embedding(7, 6), nn.Linear(6, 7, bias=False))
    module[1].weight = module[0].weight
    return written(wrap, lambda m: m[0].weight.data.mul_(2), module, torch.tensor([1, 6, 0]))


@scenario
def weights_in_a_flat_buffer(wrap):
    flat, module = torch.linspace(-1, 1, 35), linear()
    module[0].weight.data = flat[:30].view(5, 6)
    module[0].bias.data = flat[30:]
    return written(wrap, lambda _: flat.mul_(2), module)


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
def written_through_a_view(wrap):
    def write(m):
        m[0].weight.view(-1)[3:9] = 1

    return written(wrap, write)


@scenario
def written_by_a_mask(wrap):
    def write(m):
        m[0].weight[m[0].weight < 0] = 0

    return written(wrap, write)


@scenario
def written_where_it_is_detached(wrap):
    return written(wrap, lambda m: m[0].bias.detach().fill_(0.5))


@scenario
def bytes_of_the_storage(wrap):
    return written(wrap, lambda m: m[0].weight.untyped_storage().fill_(0))


@scenario
def bytes_by_address(wrap):
    def write(m):
        values = (ctypes.c_float * 6)(*range(6))
        ctypes.memmove(m[0].weight.data_ptr(), values, ctypes.sizeof(values))

    return written(wrap, write)


@scenario
def written_through_dlpack(wrap):
    def write(m):
        torch.from_dlpack(m[0].weight.detach()).mul_(3)

    return written(wrap, write)


@scenario
def storage_of_another(wrap):
    return written(wrap, lambda m: m[0].weight.set_(torch.full((5, 6), 0.1)))


@scenario
def storage_freed_and_filled(wrap):
    def write(m):
        storage, values = m[0].weight.untyped_storage(), m[0].weight.detach() * 2
        size = storage.nbytes()
        storage.resize_(0)
        keep = torch.zeros(1000)
        storage.resize_(size)
        m[0].weight.copy_(values)
        del keep

    return written(wrap, write)


@scenario
def all_at_once(wrap):
    return written(wrap, lambda m: torch._foreach_add_(list(m.parameters()), 0.25))


@scenario
def reset_parameters(wrap):
    def write(m):
        torch.manual_seed(7)
        m.apply(lambda each: each.reset_parameters() if hasattr(each, "reset_parameters") else None)

    return written(wrap, write)


@scenario
def another_shape(wrap):
    def write(m):
        m[0].weight.data = torch.linspace(-1, 1, 18).reshape(3, 6)
        m[0].bias.data = torch.ones(3)

    return written(wrap, write)


@scenario
def untied(wrap):
    module = nn.Sequential(nn.Embedding(7, 6), nn.Linear(6, 7, bias=False))
    module[1].weight = module[0].weight

    def write(m):
        m[1].weight = nn.Parameter(m[0].weight.detach() * 2)

    return written(wrap, write, module, torch.tensor([1, 6, 0]))


@scenario
def large_weights(wrap):
    module = nn.Sequential(nn.Linear(100, 200), nn.ReLU(), nn.Linear(200, 3))

    def write(m):
        m[0].weight.data.mul_(0.5)
        m[2].weight[1, 7] = 9

    return written(wrap, write, module, torch.linspace(-1, 1, 200).reshape(2, 100))


@scenario
def one_row_of_a_large_table(wrap):
    def write(m):
        m[0].weight[777] = 2.0

    return written(wrap, write, nn.Sequential(nn.Embedding(1000, 64), nn.ReLU()), torch.tensor([3, 777, 0]))


@scenario
def file_in_memory(wrap):
    """Another map of the file writes it."""
    with tempfile.NamedTemporaryFile() as file:
        np.linspace(-1, 1, 30, dtype=np.float32).tofile(file.name)
        module = linear()
        module[0].weight = nn.Parameter(torch.from_file(file.name, shared=True, size=30).view(5, 6))

        def write(_):
            other = np.memmap(file.name, np.float32, "r+")
            other[:] *= 2
            other.flush()

        return written(wrap, write, module)


@scenario
def tensors_of_a_closure(wrap):
    weight, scale = torch.ones(6, 5), torch.tensor(2.0)
    run = wrap(lambda x: x @ weight * scale)
    with torch.no_grad():
        first = run(X)
        weight[2] = 3
        scale.data.mul_(2)
        second = run(X)
        weight.numpy()[:] = 1
        return [first, second, run(X)]


@scenario
def tensors_in_a_dictionary(wrap):
    weights = {"a": torch.ones(6, 5), "b": torch.zeros(5)}
    run = wrap(lambda x: torch.tanh(x @ weights["a"] + weights["b"]))
    with torch.no_grad():
        first = run(X)
        weights["a"] = weights["a"] * 2
        second = run(X)
        weights["b"].add_(1)
        return [first, second, run(X)]
