"""Architectures of other tools - Timeloop, AccelForge - as device files of ours, with what was dropped or assumed."""

from tilec.spec.foreign.translate import Translated, translate

__all__ = ["Translated", "translate"]
