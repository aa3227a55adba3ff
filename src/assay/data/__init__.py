"""Corpora by name, user files, and planted corpora with known evidence; tokenisation and batching."""
