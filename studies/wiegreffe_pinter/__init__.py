"""Wiegreffe and Pinter (2019), Attention is not not Explanation: four tests."""
