"""How many pseudo-users a synopsis has, and how many nodes a reader takes.

The server and every reader of a result hold it.
"""

# Twice as many change the loss by less than a per mille.
N_POINTS = 20_000
# More nodes than any run publishes; a longer list is refused before it is read.
MAX_CELLS = 10_000_000
