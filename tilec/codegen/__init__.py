"""The third stage, `codegen`: from a plan to kernels that run; `driver` is its entry, `backend` the back ends."""
