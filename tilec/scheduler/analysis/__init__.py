"""Analyses of one tensor expression: access strides, contractions, the vector iterator, read windows of tiles."""
