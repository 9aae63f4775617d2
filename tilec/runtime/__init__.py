"""Load and run compiled models on CPU threads, without tvm and without a compiler."""

from tilec.abi.manifest import Manifest, TensorSpec
from tilec.runtime.session import Session, load

__all__ = ["Manifest", "Session", "TensorSpec", "load"]
