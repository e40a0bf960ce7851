"""Measure one program and make it better."""
