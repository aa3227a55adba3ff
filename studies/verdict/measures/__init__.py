"""Candidate measures of faithfulness: each is called with a case and gives a number for each example and explainer."""
