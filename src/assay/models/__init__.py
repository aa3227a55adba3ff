"""Models that can be explained: built here, trained, stored and loaded."""
