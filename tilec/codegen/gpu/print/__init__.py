"""Kernel IR of GPUs as C++ over the primitives of tile.h: printers decide nothing, and refuse nothing."""
