"""Probes: what the layers and heads of a transformer attend to, and concepts as directions in a layer."""
