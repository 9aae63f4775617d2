"""Tokens from a compiled decoder: a thin loop over a session, for measurements and small programs."""

from tilec.decoding.decoder import Decoder, decoder_of
from tilec.decoding.generate import Generation, generate, generate_batch

__all__ = ["Decoder", "Generation", "decoder_of", "generate", "generate_batch"]
