"""Running code for CPUs: libraries of object files on a pool of threads."""
