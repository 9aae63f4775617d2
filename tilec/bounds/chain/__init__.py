"""Chains of matrix products, fused under mapping templates (Orojenesis, fusion)."""
