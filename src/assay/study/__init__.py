"""Studies: a plan is a grid of trials, each made once, by as many processes or machines as there are."""
