import torch
from samples import show, voice
from silero_vad import get_speech_timestamps, load_silero_vad

audio = torch.from_numpy(voice(3.0))
model = load_silero_vad(onnx=True)
show([model(audio[:512], 16000), get_speech_timestamps(audio, model)])
