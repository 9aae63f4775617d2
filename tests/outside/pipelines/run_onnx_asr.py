import numpy as np
from onnx_asr.preprocessors.preprocessor import OnnxPreprocessor
from samples import show, voice

audio = voice(2.0)[None]
lengths = np.array([audio.shape[1]])
names = ("gigaam_v3_conv", "kaldi_conv", "nemo128_conv", "whisper80_conv")
show({name: [np.asarray(x).mean(axis=-1) for x in OnnxPreprocessor(name, {})(audio, lengths)] for name in names})
