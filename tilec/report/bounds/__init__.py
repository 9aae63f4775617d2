"""Reports on data-movement bounds: subjects with their curves, rows, table, CSV, JSON, pictures."""
