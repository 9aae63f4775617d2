"""From a plan to tile programs, and what a tile program moves and holds."""
