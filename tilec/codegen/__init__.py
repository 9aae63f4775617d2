"""The third stage: from a plan to kernels that run."""

from tilec.codegen.driver import codegen

__all__ = ["codegen"]
