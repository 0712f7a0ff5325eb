"""The server: its side of the protocol and what it computes from released messages."""
