"""Language models in the forms that exporters write, decoded step by step beside onnxruntime."""
