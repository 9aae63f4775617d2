"""What people read: the semantic diff of two plans as text, Markdown and JSON, plans in numbers, bounds, studies."""
