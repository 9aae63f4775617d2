"""Graph passes: rewrites of the whole graph that run before nodes are grouped."""
