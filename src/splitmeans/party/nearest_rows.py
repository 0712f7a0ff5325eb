"""Which local centre a party's rows belong to (rule R7)."""

from collections.abc import Callable
from functools import partial

import numpy as np

from splitmeans._types import IntArray, LabelArray
from splitmeans.kernels.assign import nearest
from splitmeans.kernels.coded_rows import coded_nearest
from splitmeans.study.coding import Coding


def labeller(coding: Coding, centres: IntArray) -> Callable[[IntArray], LabelArray]:
    """Return what labels blocks of coded rows with their nearest centre, lowest index on ties.

    Guarantee: a row's label is a pure function of that row and `centres`.
    """
    if coding.is_plain:
        return partial(nearest, centres=centres)
    limits = np.array(coding.bounds, dtype=np.int64)
    return partial(coded_nearest, centres=centres, limits=limits, levels=coding.levels)
