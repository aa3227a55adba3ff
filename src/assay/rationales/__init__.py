"""Rationales: models that select the words they decide by, concept models, and generated explanations."""
