"""Facts about graphs, plans and kernels: totals, energy, differences, bounds, why a plan is as it is; no text."""
