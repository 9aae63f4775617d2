"""What people read about data-movement bounds: subjects with their curves, rows, table, CSV, JSON, pictures."""
