"""Compiled loops on plain arrays; each has a plain twin in the tests."""
