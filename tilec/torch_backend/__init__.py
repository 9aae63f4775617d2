"""tilec inside PyTorch: `torch.compile(model, backend="tilec")` (Apollo's just-in-time compilation; A02)."""

from tilec.torch_backend.backend import compile_graph

__all__ = ["compile_graph"]
