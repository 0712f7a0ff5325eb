"""Decoy join: users' labels among decoys under secret tags (the default method)."""
