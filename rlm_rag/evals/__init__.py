"""Benchmarks: tasks, samples, scorers."""
