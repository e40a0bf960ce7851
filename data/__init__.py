"""Benchmarks, loaders, splits and graders: the only place that holds reference answers."""
