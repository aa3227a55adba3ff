"""Models that select what they read, and explanations that are generated."""
