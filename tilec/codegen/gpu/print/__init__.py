"""Kernel IR of GPUs as C++ over the primitives of tile.h: printers take no decision of a plan, and refuse nothing."""
