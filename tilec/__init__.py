"""tilec compiles ONNX models for devices described in YAML and writes every decision down as JSON."""

__version__ = "0.1.0"
