"""Contextual decomposition of networks."""
