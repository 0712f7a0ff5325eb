"""Metrics that need all parties' rows: hand-computed cases."""

import numpy as np
import pytest

from benchmarks.metrics import true_cell_weights
from splitmeans.errors import ParameterError


def test_true_cell_weights_by_hand():
    labels = [np.array([0, 0, 1, 1]), np.array([2, 2, 0, 1])]
    assert true_cell_weights(labels, [2, 3]).tolist() == [[0, 0, 2], [1, 1, 0]]
    assert true_cell_weights(labels, (2, 3)).dtype == np.int64
    with pytest.raises(ParameterError, match="one number for each of 2 parties, got 1"):
        true_cell_weights(labels, [2])
