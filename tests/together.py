"""Which files of tests run in one process, one after another, because they share what takes long to make."""

from __future__ import annotations

from xdist.scheduler.loadfile import LoadFileScheduling

FOLDERS = ("tests/analysis/explain/", "tests/backend/", "tests/fuzz/")
"""Searches of the small zoo run again, the cases that come with onnx, a process that compiles random models."""


class Together(LoadFileScheduling):
    """Hands out files, and these folders whole."""

    def _split_scope(self, nodeid: str) -> str:
        return next((folder for folder in FOLDERS if nodeid.startswith(folder)), super()._split_scope(nodeid))
