"""Models that can be explained: networks defined, trained, stored and loaded here, and Hugging Face transformers."""
