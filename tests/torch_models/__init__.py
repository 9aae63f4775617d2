"""Models of packages through `torch.compile(backend="tilec")`, judged by eager PyTorch."""
