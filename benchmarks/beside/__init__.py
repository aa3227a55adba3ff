"""Ours beside the peers: the same model and texts, the same work, in one run."""
