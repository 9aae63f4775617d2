"""Control flow resolved by import: branches, loops, scans, sequences and optionals; bodies are graphs of their own."""
