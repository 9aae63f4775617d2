"""Device and recipe files: YAML with units, places in every error, names that resolve anywhere."""
