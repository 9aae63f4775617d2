"""CPU back end: tile programs to TIR kernels, a host function, one library of object files."""
