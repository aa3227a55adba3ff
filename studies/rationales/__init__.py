"""Models that select what they read: every recipe, on texts with the words that people marked."""
