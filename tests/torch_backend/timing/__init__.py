"""The modules of the tests through several backends of `torch.compile` in turns."""
