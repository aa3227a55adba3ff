"""Explanations by reading a text many times with only some of its tokens: the model is a black box."""
