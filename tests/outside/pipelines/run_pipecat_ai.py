from pipecat.audio.turn.smart_turn.local_smart_turn_v3 import LocalSmartTurnAnalyzerV3
from pipecat.audio.vad.silero import SileroVADAnalyzer
from samples import pcm, show, voice

audio = voice(3.0)
turn = LocalSmartTurnAnalyzerV3()._predict_endpoint(audio)
vad = SileroVADAnalyzer(sample_rate=16000)
show([turn, [vad.voice_confidence(pcm(audio[i : i + 512]).tobytes()) for i in range(0, 16000, 512)]])
