"""Decisions that are explained by concepts: which are there, where they stand, and what each counts."""
