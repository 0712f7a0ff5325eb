"""Benchmarks: thin code over the library that prints tables and writes JSON."""
