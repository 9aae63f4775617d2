"""Graph nets: messages along edges, summed, averaged or weighed where they arrive."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.torch_models.case import Call, Case, by_position


class GraphConvolution(nn.Module):
    """Neighbours weighed by degrees, added by `index_add`."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(2))

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        source, target = edges[0], edges[1]
        degree = torch.zeros(len(x), dtype=x.dtype).index_add(0, target, torch.ones_like(target, dtype=x.dtype)) + 1
        norm = degree.rsqrt()
        for layer in self.layers:
            hidden = layer(x)
            messages = hidden[source] * (norm[source] * norm[target])[:, None]
            x = functional.relu(torch.zeros_like(hidden).index_add_(0, target, messages) + hidden / degree[:, None])
        return x


class GraphAttention(nn.Module):
    """A softmax over the edges that arrive at a node, by the largest (`scatter_reduce`) and the sum (`scatter_add`)."""

    def __init__(self, width: int = 16, heads: int = 2) -> None:
        super().__init__()
        self.heads = heads
        self.linear = nn.Linear(width, width)
        self.arriving, self.leaving = (nn.Parameter(torch.randn(heads, width // heads)) for _ in range(2))

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        source, target = edges
        hidden = self.linear(x).view(len(x), self.heads, -1)
        scores = functional.leaky_relu(
            (hidden * self.leaving).sum(-1)[source] + (hidden * self.arriving).sum(-1)[target], 0.2
        )
        places = target[:, None].expand_as(scores)
        largest = torch.full((len(x), self.heads), -torch.inf, dtype=x.dtype).scatter_reduce(0, places, scores, "amax")
        weights = torch.exp(scores - largest[target])
        total = torch.zeros(len(x), self.heads, dtype=x.dtype).scatter_add(0, places, weights)
        messages = hidden[source] * (weights / total[target])[..., None]
        return torch.zeros_like(hidden).index_add(0, target, messages).flatten(1)


class MessagePassing(nn.Module):
    """Messages of pairs by a small network, the mean and the largest of them, a pooled result for each graph."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.message = nn.Sequential(nn.Linear(2 * width + 3, 32), nn.SiLU(), nn.Linear(32, width))
        self.update, self.norm = nn.GRUCell(2 * width, width), nn.LayerNorm(width)
        self.out = nn.Linear(width, 2)

    def forward(self, x: Tensor, edges: Tensor, features: Tensor, graph: Tensor) -> Tensor:
        source, target = edges[0], edges[1]
        messages = self.message(torch.cat([x[source], x[target], features], -1))
        places = target[:, None].expand_as(messages)
        mean = torch.zeros_like(x).scatter_reduce(0, places, messages, "mean", include_self=False)
        most = torch.zeros_like(x).scatter_reduce(0, places, messages, "amax", include_self=False)
        x = self.norm(self.update(torch.cat([mean, most], -1), x))
        return self.out(torch.zeros(4, x.shape[1], dtype=x.dtype).index_add(0, graph, x))


def _graph(nodes: int, edges: int, *more: str) -> Call:
    ends = torch.randint(0, nodes, (2, edges))
    made = {"features": torch.randn(edges, 3), "graph": torch.randint(0, 4, (nodes,))}
    return by_position(torch.randn(nodes, 16), ends, *(made[name] for name in more))


def _graphs(*more: str) -> list[Call]:
    return [_graph(nodes, edges, *more) for nodes, edges in ((12, 40), (20, 55), (12, 40))]


CASES = (
    Case("gcn", "graph", GraphConvolution, lambda _model: _graphs()),
    Case("gat", "graph", GraphAttention, lambda _model: _graphs()),
    Case("mpnn", "graph", MessagePassing, lambda _model: _graphs("features", "graph")),
)
