"""The passes that make the kernel IR of a GPU and decide about it, one a file."""
