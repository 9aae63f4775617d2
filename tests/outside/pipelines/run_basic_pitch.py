import tempfile
import wave
from pathlib import Path

import basic_pitch
from basic_pitch.inference import predict
from samples import pcm, show, voice

with tempfile.TemporaryDirectory() as folder:
    file = f"{folder}/a.wav"
    with wave.open(file, "wb") as writer:
        writer.setparams((1, 2, 22050, 0, "NONE", ""))
        writer.writeframes(pcm(voice(3.0, 22050)).tobytes())
    model = Path(basic_pitch.__file__).parent / "saved_models/icassp_2022/nmp.onnx"
    output, _, notes = predict(file, model)
show([{name: each.mean(axis=0) for name, each in output.items()}, sorted(note[:3] for note in notes)])
