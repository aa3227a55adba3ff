"""Black-box explanations: the model is queried with subsets of a text's tokens."""
