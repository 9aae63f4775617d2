"""Which graphs of Dynamo were compiled before: a compiler that starts ahead of its request would have nothing to do.

Weights are no part of what is noted: a graph with others takes over plan and code.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import fx

from tilec.api.cache import Cache
from tilec.artifact import cache_folder, digest_object, tools
from tilec.torch_backend.options import Options

_KEY = 32
"""Digits of a digest that name a note."""


class Note:
    """The note in the cache that a graph was compiled for such inputs, there or not."""

    def __init__(self, module: fx.GraphModule, inputs: Sequence[Any], options: Options) -> None:
        parts = [each.code for each in module.modules() if isinstance(each, fx.GraphModule)]
        given = [_described(each) for each in inputs]
        digest = digest_object([parts, given, options.device, options.recipe, options.specialize, tools()])
        self._cache = Cache(Path(options.cache) if options.cache is not None else cache_folder())
        self._path = self._cache.root / "graphs" / digest[:_KEY]

    @property
    def there(self) -> bool:
        """Whether the graph was compiled before."""
        return self._path.is_file()

    def keep(self) -> None:
        """Note that it is."""
        if not self.there:
            self._cache.keep(self._path, "")


def _described(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"{value.dtype} {tuple(map(str, value.shape))} {tuple(map(str, value.stride()))}"
    return str(value)
