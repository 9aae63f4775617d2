"""The fourth stage: compare what was compiled with a reference on fresh random inputs."""

from tilec.verify.outcome import Outcome
from tilec.verify.stage import verify

__all__ = ["Outcome", "verify"]
