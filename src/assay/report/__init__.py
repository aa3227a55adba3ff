"""Turns a finished audit into a verdict, tables, figures and one offline page; needs no model."""
