"""Published studies, run again with this tool; each folder puts its figures beside the paper's."""
