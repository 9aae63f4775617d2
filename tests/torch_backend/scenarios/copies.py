"""Copies of compiled modules, and files of them."""

import copy
import gc
import io
import pickle
import tempfile
import weakref

import torch
from torch import fx, nn

from torch_backend.scenarios.program import X, linear, scenario


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
    wrap.in_place(module)
    with torch.no_grad():
        first = module(X)
        other = pickle.loads(pickle.dumps(module))
        return [first, other(X)]


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
def whole_module_saved(wrap):
    module, file = linear(), io.BytesIO()
    wrap.in_place(module)
    with torch.no_grad():
        first = module(X)
        torch.save(module, file)
        file.seek(0)
        other = torch.load(file, weights_only=False)
        other[0].bias.data.add_(1)
        return [first, other(X), wrap(other)(X), module(X)]


@scenario
def state_mapped_from_a_file(wrap):
    module, other = linear(), linear()
    run = wrap(module)
    with torch.no_grad(), tempfile.NamedTemporaryFile() as file:
        first = run(X)
        torch.save(other.state_dict(), file.name)
        module.load_state_dict(torch.load(file.name, mmap=True), assign=True)
        return [first, run(X), other(X)]


@scenario
def copies_of_parameters(wrap):
    module = linear()
    run = wrap(module)
    with torch.no_grad():
        first = run(X)
        shallow = copy.copy(module)
        shallow._modules = dict(module._modules)
        shallow[0] = copy.deepcopy(module[0])
        shallow[0].weight.data.neg_()
        return [first, wrap(shallow)(X), run(X)]


@scenario
def many_copies(wrap):
    """As many modules as an ensemble has, with weights each."""
    modules = [linear() for _ in range(5)]
    runs = [wrap(each) for each in modules]
    with torch.no_grad():
        results = [run(X) for run in runs]
        modules[3][0].weight.data.add_(1)
        return [*results, *(run(X) for run in runs)]


@scenario
def freed(wrap):
    module = linear()
    run, alive = wrap(module), weakref.ref(module[0].weight)
    with torch.no_grad():
        first = run(X)
    del run, module
    torch._dynamo.reset()
    gc.collect()
    return [first, torch.tensor(alive() is None)]


@scenario
def exported_module(wrap):
    program = torch.export.export(linear(), (X,), dynamic_shapes=({0: torch.export.Dim("n")},))
    run = wrap(program.module())
    with torch.no_grad():
        return [run(X), run(X[:2]), run(X[:3])]


@scenario
def exported_after_it_was_compiled(wrap):
    module = linear()
    wrap.in_place(module[0])
    with torch.no_grad():
        first = module(X)
        copied = copy.deepcopy(module)
        program = torch.export.export(copied, (X,))
        return [first, program.module()(X), module(X)]


@scenario
def traced_module(wrap):
    module = linear()
    run = wrap(fx.symbolic_trace(module))
    with torch.no_grad():
        first = run(X)
        module[0].weight.data.mul_(2)
        return [first, run(X)]


@scenario
def fused_for_inference(wrap):
    module = nn.Sequential(nn.Conv1d(3, 4, 2), nn.BatchNorm1d(4)).eval()
    module[1].running_var.mul_(3)
    run = wrap(torch.nn.utils.fuse_conv_bn_eval(*module))
    x = X.reshape(2, 3, 4)
    with torch.no_grad():
        return [run(x), module(x)]


@scenario
def attributes_of_a_compiled_module(wrap):
    module = linear()
    run = wrap(module)
    with torch.no_grad():
        first = run(X)
        layer = run.get_submodule("0")
        layer.bias.data.fill_(1)
        layer.weight = nn.Parameter(torch.ones(5, 6) / 9)
        count = torch.tensor([len(list(run.parameters())), sum(p.numel() for p in run.parameters())])
        return [first, run(X), count, layer.bias]
