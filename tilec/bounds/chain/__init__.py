"""Chains of matrix products that are fused under mapping templates."""
