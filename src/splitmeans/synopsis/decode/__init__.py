"""From released counts and points to pseudo-users: one path for all studies.

recipe          the steps, in order, at one glance
counted         users by label for each pair of parties ("absent" is a label), and who is where
cleaned         tables whose sizes agree, without cells that are noise
pooling         tables that count neighbouring local clusters together
classes         a mixture of a few classes that explains all tables
max_entropy     label vectors whose pairs agree with the tables, and no more
weighing        tables between noise and model; weights of vectors
vectors         label vectors drawn from classes; those of the population that is asked for
placing         pseudo-users in the cells, at the parties' points
exchanging      which places of the parties go together: by dependence and by segment
dependence      how columns of different parties depend on each other beyond cells
by_segment      places within local clusters by segment
carried_over    in a run of a series, users of the result before
"""

from splitmeans.synopsis.decode.counted import (
    LEAST_DEVIATIONS,
    Counts,
    KnowsPresence,
    read_counts,
)
from splitmeans.synopsis.decode.placing import PseudoUsers, place_users
from splitmeans.synopsis.decode.recipe import STEPS, Previous, Released, decode, without

__all__ = [
    "LEAST_DEVIATIONS",
    "STEPS",
    "Counts",
    "KnowsPresence",
    "Previous",
    "PseudoUsers",
    "Released",
    "decode",
    "place_users",
    "read_counts",
    "without",
]
