"""Reductions of few results spread over the units of a device, where that is predicted to pay."""
