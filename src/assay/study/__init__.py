"""Studies: a plan is a grid of trials, each run once, in parallel processes or on a cluster."""
