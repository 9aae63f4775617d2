"""Every family of operators against onnxruntime."""
