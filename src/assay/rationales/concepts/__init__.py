"""Concept models: decisions explained by concepts, their words, and their weights."""
