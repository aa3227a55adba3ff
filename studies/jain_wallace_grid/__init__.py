"""Jain and Wallace (2019): every corpus that can be had, encoder and attention, over three seeds."""
