"""Texts, words and batches: corpora by name, any file of a user, and planted ones whose truth is known."""
