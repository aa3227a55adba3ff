"""Speed and memory of each step, beside a plain loop over examples in the same run."""
