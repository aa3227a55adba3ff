"""The page of the probes of attention heads: what each head attends to, against position and against chance."""
