"""The page of the training texts behind a decision, and of those behind a look at a word."""
