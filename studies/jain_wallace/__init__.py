"""Jain and Wallace (2019), Attention is not Explanation: table 2."""
