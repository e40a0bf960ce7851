"""Graders: compare an answer with the reference."""
