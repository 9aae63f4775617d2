from livekit.plugins.silero import onnx_model
from samples import show, voice

model = onnx_model.OnnxModel(onnx_session=onnx_model.new_inference_session(True), sample_rate=16000)
size = model.window_size_samples
audio = voice(1.0)
show([model(audio[i : i + size]) for i in range(0, len(audio) - size, size)])
