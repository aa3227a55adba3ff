"""Metrics of explanations: functions of numpy arrays, without a model."""
