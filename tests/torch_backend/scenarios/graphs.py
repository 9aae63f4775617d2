"""Graphs: breaks, sizes and values that vary, errors."""

import io

import torch
import torch.utils.checkpoint
from torch import nn

from torch_backend.scenarios.program import X, linear, on_tensors, scenario, written

SCALE = [1]


@on_tensors(X)
def graph_break_and_view(x):
    y = (x * 2).reshape(2, 2, 6).permute(1, 0, 2)
    torch._dynamo.graph_break()
    z = (y + 1).permute(1, 0, 2)
    torch._dynamo.graph_break()
    return y.permute(1, 0, 2).view(4, 6), z.view(-1), torch.as_strided(y, (2, 3), (1, 2))


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


@scenario
def printed_in_the_middle(wrap):
    lines = io.StringIO()

    def function(x):
        y = torch.tanh(x)
        print("middle", file=lines)
        return y * 2 + 1

    run = wrap(function)
    with torch.no_grad():
        return [run(X), run(X), torch.tensor(len(lines.getvalue()))]


@scenario
def branch_of_data(wrap):
    def function(x):
        y = torch.sin(x)
        return y * 2 if y.sum() > 1 else y - 1

    run = wrap(function)
    with torch.no_grad():
        return [run(X), run(X + 1), run(X)]


@scenario
def number_of_a_tensor(wrap):
    def function(x):
        most = x.abs().max().item()
        return torch.tanh(x / most), most

    run, results = wrap(function), []
    with torch.no_grad():
        for n in (1, 2, 3):
            made, most = run(X * n)
            results += [made, torch.tensor(most)]
    return results


@scenario
def number_captured(wrap):
    def function(x, n):
        return torch.tanh(x) * n.item() + x[:, : x.shape[1] // 2].sum()

    with torch._dynamo.config.patch(capture_scalar_outputs=True), torch.no_grad():
        run = wrap(function)
        return [run(X, torch.tensor(n)) for n in (2.5, 0.5, -1.0)]


@scenario
def breaks_in_a_loop(wrap):
    def function(x):
        for n in range(4):
            x = torch.tanh(x) + n
            if n % 2:
                torch._dynamo.graph_break()
        return x

    run = wrap(function)
    with torch.no_grad():
        return [run(X), run(X[:3])]


@scenario
def not_compiled_inside(wrap):
    @torch.compiler.disable
    def outside(x):
        return x.numpy().cumsum(0)

    def function(x):
        y = torch.sin(x) * 2
        return y + torch.from_numpy(outside(y))

    run = wrap(function)
    with torch.no_grad():
        return [run(X), run(X)]


@scenario
def module_not_compiled(wrap):
    module = nn.Sequential(nn.Linear(6, 5), torch.compiler.disable(nn.Linear(5, 5)), nn.Tanh())
    return written(wrap, lambda m: m[0].weight.data.mul_(2), module)


@scenario
def stances(wrap):
    run, results = wrap(linear()), []
    with torch.no_grad():
        results.append(run(X))
        with torch.compiler.set_stance("force_eager"):
            results.append(run(X + 1))
        with torch.compiler.set_stance("eager_on_recompile"):
            results += [run(X + 2), run(X[:2])]
        with torch.compiler.set_stance("fail_on_recompile"):
            results.append(run(X + 3))
        return [*results, run(X[:2])]


@scenario
def error_in_the_middle(wrap):
    def function(x, wrong):
        x.add_(1)
        y = torch.tanh(x)
        if wrong:
            raise ValueError("wrong")
        return y * 2

    run, x, said = wrap(function), X.clone(), []
    with torch.no_grad():
        for wrong in (False, True, False):
            try:
                said.append(run(x, wrong))
            except ValueError as error:
                said.append(torch.tensor(str(error) == "wrong"))
            said.append(x.clone())
    return said


@scenario(leaves="aten.addmm")
def errors_of_shapes(wrap):
    run, said = wrap(nn.Linear(6, 5)), []
    with torch.no_grad():
        said.append(run(X))
        for wrong in (X[:, :5], X.double(), X.flatten()[:7], None):
            try:
                run(wrong)
            except Exception as error:
                said.append(torch.tensor(isinstance(error, (RuntimeError, TypeError))))
        return [*said, run(X)]


@scenario
def errors_caught_inside(wrap):
    def function(x):
        try:
            y = torch.tanh(x)
            raise KeyError("here")
        except KeyError:
            return torch.sin(y)

    run = wrap(function)
    with torch.no_grad():
        return [run(X), run(X)]


@scenario(leaves="aten._assert_async")
def assertions_of_data(wrap):
    def function(x):
        assert x.min() > -5, "small"
        return torch.tanh(x)

    run, said = wrap(function), []
    with torch.no_grad():
        for n in (1, 10, 1):
            try:
                said.append(run(X * n))
            except (AssertionError, RuntimeError):
                said.append(torch.tensor(n))
    return said


@scenario
def reset_between(wrap):
    module = linear()
    run = wrap(module)
    with torch.no_grad():
        results = [run(X)]
        torch.compiler.reset()
        module[0].weight.data.mul_(2)
        return [*results, run(X), run(X[:2])]


@scenario
def generators(wrap):
    def function(x):
        def rows():
            for row in x:
                yield torch.tanh(row)

        return torch.stack([row * n for n, row in enumerate(rows())])

    run = wrap(function)
    with torch.no_grad():
        return [run(X), run(X[:3])]


@scenario
def checkpointed(wrap):
    module = linear()
    run = wrap(lambda x: torch.utils.checkpoint.checkpoint(module, x, use_reentrant=False) * 2)
    with torch.no_grad():
        return [run(X), run(X[:2])]


@scenario
def global_number(wrap):
    run, results = wrap(lambda x: torch.tanh(x) * SCALE[0]), []
    with torch.no_grad():
        for SCALE[0] in (1, 2, 5, 3):
            results.append(run(X))
    return results
