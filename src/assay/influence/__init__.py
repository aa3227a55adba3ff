"""Which training examples made the model decide so."""
