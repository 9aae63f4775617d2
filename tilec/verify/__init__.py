"""The fourth stage: verify a compiled model against a reference on fresh random inputs."""

from tilec.verify.outcome import Outcome
from tilec.verify.stage import verify

__all__ = ["Outcome", "verify"]
