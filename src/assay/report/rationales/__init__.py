"""The page of a model that selects what it reads."""
