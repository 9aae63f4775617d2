"""Names of files of prepared weights: each contains the digest of its content, so that kernels never meet the weights
of another build in their folder, whenever a process that writes there is killed."""

import re


def weights_file(sha256: str) -> str:
    """The name of a file of prepared weights with this digest."""
    return f"weights-{sha256[:16]}.safetensors"


def is_weights_file(name: str) -> bool:
    """Whether a file of this name holds prepared weights; others are the model's own."""
    return re.fullmatch(r"weights-[0-9a-f]{16}\.safetensors", name) is not None
