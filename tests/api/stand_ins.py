"""Stand-ins for compiled models, that any back end's come before: what is compiled for which sizes, and what serves."""

import threading

import numpy as np

from tilec.errors import UnsupportedError, UsageError


class Loaded:
    """s = a + c and p = a * c, in NumPy; refuses sizes that it was not compiled for, as the runtime does."""

    def __init__(self, compiler, request):
        self.compiler, self.sizes, self.calls = compiler, dict(request.sizes), 0

    def run(self, feeds, out=None):
        a, c = feeds["a"], feeds["c"]
        for name, array in feeds.items():
            if self.sizes.get("batch", len(array)) != len(array):
                raise UsageError(f"{name} is not for {self.sizes}")
            if len(array) > self.compiler.most:
                raise UsageError(
                    f"input {name!r} has {len(array)} along dimension 0, the model takes 0 to {self.compiler.most} for "
                    "batch (table)"
                )
        if len(a) != len(c):
            raise UsageError(f"input 'c' has {len(c)} along dimension 0, input 'a' has {len(a)} along dimension 0")
        self.calls += 1
        return {"s": a + c, "p": a * c}


class Compiler:
    """Takes the place of `load_compiled`; `refuses` names sizes without which it cannot compile, `gate` holds it up."""

    def __init__(self, monkeypatch, refuses=(), most=1 << 20):
        self.requests, self.refuses, self.most = [], refuses, most
        self.gate = threading.Event()
        self.gate.set()
        self.loaded = []
        self.at_once = self.most_at_once = 0
        for module in ("model_dispatch", "specializations"):
            monkeypatch.setattr(f"tilec.api.{module}.load_compiled", self.load)
            monkeypatch.setattr(f"tilec.api.{module}.available", self.available)

    @property
    def sizes(self):
        """The sizes that models were compiled for, in turn."""
        return [dict(request.sizes) for request in self.requests]

    def available(self, request):
        return request.key in [model.key for model in self.loaded]

    def load(self, request, threads):
        if not self.available(request):
            self.requests.append(request)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            assert self.gate.wait(60)
            missing = [name for name in self.refuses if name not in request.sizes]
            if missing:
                raise UnsupportedError(f"the size {missing[0]} is not bound", "model", f"--shape {missing[0]}=SIZE")
            model = Loaded(self, request)
            model.key = request.key
            self.loaded.append(model)
            return model
        finally:
            self.at_once -= 1


def feeds(batch):
    return {"a": np.full((batch, 4), 2, np.float32), "c": np.full((batch, 4), 3, np.float32)}
