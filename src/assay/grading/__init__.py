"""Grades of explainers, their order, and differences between runs: numbers of records, without a page or a model."""
