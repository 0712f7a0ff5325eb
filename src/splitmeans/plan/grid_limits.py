"""How large a grid may be, and what it takes in memory, from public facts.

The server and every reader of a result hold it.

Measured with 65,000 to a million cells and 4 to 48 columns in all, from the counts to the written
result: about six copies of the nodes at the peak, while a clustering or the result file is made.
"""

# Bytes of a cell: for each column six numbers, for each party labels, weights and the like.
_PER_COLUMN, _PER_PARTY, _PER_CELL = 48, 16, 64

# A dense grid of this size takes 80 MB per array and still clusters in minutes.
MAX_CELLS = 10_000_000
# Points of a grid that is too large to be dense; twice as many change the loss by less than a per
# mille.
N_POINTS = 20_000
# The grid of three or more parties: pair tables and a presence table.
PRESENCE = "presence"
# No grid at all: a study of counts alone has a presence table and nothing else.
COUNTS = "counts"
# Grids that are a model of the users, from which so many points are drawn.
SAMPLED = ("many", PRESENCE)
# More than a large machine gives to one process.
MAX_GRID_BYTES = 16 * 10**9


def grid_bytes(*, cells: int, n_features: int, n_parties: int) -> int:
    """Return about how much memory a synopsis of so many cells takes until it is written."""
    return cells * (_PER_COLUMN * n_features + _PER_PARTY * n_parties + _PER_CELL)
