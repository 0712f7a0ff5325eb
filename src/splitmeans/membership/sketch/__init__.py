"""The sketch with phantoms in every cell: one proof for all parties."""
