"""Lint of devices, recipes and artifacts: errors and suspicious values, each finding with place and fix."""
