"""Numbers about explanations: functions of numpy arrays that need no model."""
