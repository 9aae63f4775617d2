from faster_whisper.vad import get_speech_timestamps, get_vad_model
from samples import show, voice

audio = voice(3.0)
show([get_vad_model()(audio[: len(audio) // 512 * 512]), get_speech_timestamps(audio)])
