"""Segment probabilities mean what they say, on mixed Gaussian data and exact cell counts."""

import numpy as np
import pytest

from benchmarks.metrics import true_cell_weights
from benchmarks.reliability import reliability
from splitmeans.kernels.assign import nearest
from splitmeans.kmeans.weighted_kmeans import weighted_kmeans
from splitmeans.paper.datasets import mixed_gaussian
from splitmeans.party.labels import segment_probabilities
from splitmeans.simulate.evaluation import assign_labels
from splitmeans.study import Column, PartySpec
from splitmeans.study.features import GRID_UNITS
from splitmeans.synopsis.build import build_synopsis
from splitmeans.table.prepare import prepare_table

N = 10_000


def simulate(*, std, n_parties, width, seed):
    """Return the parties' tables, the synopsis, its five segments, and the users' true ones."""
    rows = mixed_gaussian(N, std=std, random_state=seed).rows
    parts = np.split(np.arange(8), n_parties)
    parties = [
        PartySpec(name=f"p{i}", columns=tuple(Column(name=f"c{c}", low=-1, high=1) for c in part))
        for i, part in enumerate(parts)
    ]
    tables = [prepare_table(p, rows[:, part]) for p, part in zip(parties, parts, strict=True)]
    rng = np.random.default_rng(seed)
    centres = []
    for table in tables:
        scaled = table.raw_rows[:2000] / GRID_UNITS
        found = weighted_kmeans(scaled, np.ones(len(scaled)), n_clusters=width, rng=rng)
        centres.append(np.rint(found * GRID_UNITS).astype(np.int64))
    labels = [nearest(t.raw_rows, c) for t, c in zip(tables, centres, strict=True)]
    weights = true_cell_weights(labels, (width,) * n_parties).astype(float)
    synopsis = build_synopsis(weights, centres, parties)
    segments = synopsis.cluster(5, random_state=seed)
    pooled = np.hstack([table.raw_rows for table in tables]) / GRID_UNITS
    return tables, synopsis, segments, assign_labels(pooled, segments.scaled_centres)


# Seeds are fixed, so a failure means a change in the code. Sampling alone moves the error by about
# 0.5 / sqrt(N) = 0.005; measured are 0.000 to 0.022.
@pytest.mark.parametrize(("n_parties", "width"), [(2, 10), (4, 6)])
@pytest.mark.parametrize("std", [0.1, 0.2, 0.3])
def test_probabilities_are_calibrated(std, n_parties, width):
    tables, synopsis, segments, truth = simulate(std=std, n_parties=n_parties, width=width, seed=1)
    for table in tables[:2]:
        found = segment_probabilities(table, synopsis, centres=segments)
        assert reliability(found, truth).error < 0.03


def test_own_columns_tell_more_than_segment_sizes():
    tables, synopsis, segments, truth = simulate(std=0.2, n_parties=4, width=6, seed=2)
    guess = np.max(segments.sizes) / segments.sizes.sum()
    for table in tables:
        found = segment_probabilities(table, synopsis, centres=segments)
        assert np.mean(found.argmax(axis=1) == truth) > guess + 0.2


def test_the_check_can_fail():
    """Probabilities pushed towards certainty are found out."""
    tables, synopsis, segments, truth = simulate(std=0.3, n_parties=4, width=6, seed=1)
    sharp = segment_probabilities(tables[0], synopsis, centres=segments) ** 4
    sharp /= sharp.sum(axis=1, keepdims=True)
    assert reliability(sharp, truth).error > 0.06
