"""Reports for people and programs: plan diffs as text, Markdown and JSON, plans in numbers, bounds, studies."""
