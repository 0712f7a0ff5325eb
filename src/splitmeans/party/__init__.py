"""A party: its table, what it computes from its rows, and its side of the protocol."""
