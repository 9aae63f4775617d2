import numpy as np
from samples import show, voice
from speechmos import aecmos, dnsmos, plcmos

np.random.seed(0)  # plcmos draws an embedding of its rater
audio = voice(4.0)
echo = {"lpb": audio, "mic": 0.5 * audio, "enh": 0.2 * audio}
show([dnsmos.run(audio, 16000), plcmos.run(audio, 16000), aecmos.run(echo, 16000, "st")])
