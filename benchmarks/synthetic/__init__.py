"""Synthetic rows against real ones, and against methods that see all rows in one place."""
