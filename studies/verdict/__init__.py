"""Which measures of faithfulness tell explainers that find the deciding words from those that do not?"""
