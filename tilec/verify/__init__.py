"""The fourth stage: compare what was compiled with a reference on fresh random inputs."""
