"""Graph passes, which run before anything is grouped, and how a graph is rewritten."""
