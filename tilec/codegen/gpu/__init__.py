"""Code for GPUs: C++ over a small header of tile primitives, which CUDA, HIP and a C++ compiler build."""
