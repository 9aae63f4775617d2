"""What is read off one tensor expression: its accesses, its kind, its vector iterator, what tiles of it read."""
