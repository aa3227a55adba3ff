"""The tables of a study: what was asked of every model on every corpus, and how sure the answers are."""
