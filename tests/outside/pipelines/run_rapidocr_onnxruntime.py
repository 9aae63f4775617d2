from rapidocr_onnxruntime import RapidOCR
from samples import page, show

show(RapidOCR()(page())[0])
