from openwakeword.model import Model
from samples import pcm, show, voice

show(Model(inference_framework="onnx").predict_clip(pcm(voice(2.0))))
