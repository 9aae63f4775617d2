"""Lowering of plans to tile programs, with planned traffic, transactions and footprint of the programs."""
