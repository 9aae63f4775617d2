"""Explanations of a plan as text: the search is run again for the question and reports its figures for edges, groups
and nodes; no stored reasons are read."""
