"""Explanations as sentences: written by a small encoder–decoder, or by a template."""
