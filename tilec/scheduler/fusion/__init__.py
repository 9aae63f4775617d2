"""What shares registers and what shares a core's level, and the blocks of a plan that come of it."""
