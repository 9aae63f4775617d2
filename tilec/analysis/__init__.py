"""Facts about graphs, plans and kernels: totals, energy, differences, bounds, explanations of a plan; no text."""
