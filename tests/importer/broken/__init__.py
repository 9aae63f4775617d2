"""Models that break a rule of ONNX, in each of the ways that files are broken."""

from tests.importer.broken import bodies, declarations, nodes, ports
from tests.importer.broken.models import CHANGES, branches, broken, layer, lookup, sequence

__all__ = ["CHANGES", "bodies", "branches", "broken", "declarations", "layer", "lookup", "nodes", "ports", "sequence"]
