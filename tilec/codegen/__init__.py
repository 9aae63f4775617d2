"""The third stage: from a plan to kernels that run."""
