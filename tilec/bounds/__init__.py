"""Data-movement bounds: attainable traffic of Einsums over mapspaces (Orojenesis), and proven lower bounds."""
