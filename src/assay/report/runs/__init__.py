"""Runs side by side: what differs between them, and by more than noise."""
