from openwakeword.model import Model
from samples import pcm, show, voice

show(Model().predict_clip(pcm(voice(2.0))))
