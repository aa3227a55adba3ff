"""Runs that leave something behind: training, audits, explanations of single texts."""
