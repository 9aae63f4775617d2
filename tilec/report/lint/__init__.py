"""What is legal but suspicious, or wrong, in devices, recipes and artifacts: findings with place and fix."""
