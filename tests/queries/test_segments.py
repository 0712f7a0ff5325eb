"""Segments of rows in replicates: those of the places where a replicate has the rows."""

import numpy as np
import pandas as pd
import pytest

from splitmeans.estimator import VerticalKMeans
from splitmeans.kmeans.distances import squared_distances
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.queries.rows import replicate_segments
from splitmeans.queries.sql import ask_sql


@pytest.fixture(scope="module")
def result():
    """Two groups that overlap in numbers, which part them; a rare category tells little."""
    rng = np.random.default_rng(4)
    group = rng.integers(2, size=3_000)
    numbers = np.clip(np.array([-0.3, 0.3])[group][:, None] + rng.normal(0, 0.3, (3_000, 2)), -1, 1)
    plan = np.where(rng.random(3_000) < 0.02 + 0.03 * group, "gold", "basic")
    model = VerticalKMeans(
        2,
        epsilon=2,
        bounds={"x": (-1, 1), "y": (-2, 1)},
        categories={"plan": ["gold", "basic"]},
        n_local_clusters=4,
        noise=InsecureSeededNoise(2),
        random_state=1,
    ).fit(
        {
            "bank": pd.DataFrame({"x": numbers[:, 0], "plan": plan}),
            "shop": pd.DataFrame({"y": numbers[:, 1]}),
        }
    )
    return model.published_


def test_a_row_has_the_segment_that_is_nearest_where_the_replicate_has_it(result):
    """The naive twin: move the rows of one replicate, and look for the nearest centre."""
    replicates = result.synopsis.replicates
    found = replicate_segments(result, replicates)
    rows = replicates.synopsis
    assert found.shape == (len(rows.weights), replicates.n)
    names = list(rows.feature_names)
    for draw in (0, 7):
        nodes = rows.nodes
        for name in ("bank: x", "shop: y"):
            nodes[:, names.index(name)] = replicates.values(name)[:, draw]
        places = rows.seen(rows.scaled_centres(nodes))
        centres = rows.seen(result.published.scaled_centres)
        nearest = squared_distances(places, centres).argmin(axis=1)
        # Distances here are 64-bit numbers, there 32-bit: hardly anybody is that near to both.
        assert (found[:, draw] == nearest).mean() > 0.999


def test_rows_far_from_the_border_stay_and_some_near_it_do_not(result):
    replicates = result.synopsis.replicates
    found = replicate_segments(result, replicates)[: replicates.published]
    gaps = squared_distances(
        result.synopsis.seen(result.synopsis.scaled_nodes),
        result.synopsis.seen(result.published.scaled_centres),
    )
    same = (found == gaps.argmin(axis=1)[:, None]).mean(axis=1)
    far = np.abs(gaps[:, 0] - gaps[:, 1])
    order = np.argsort(far)
    assert same[order[:100]].mean() < 0.95
    assert same[order[-100:]].min() == 1.0


def test_a_query_that_names_segments_counts_those_near_borders(result, monkeypatch):
    """The users of a segment are less certain than the same rows, chosen by where they are."""
    query = "SELECT segment, sum(weight) AS users FROM synopsis GROUP BY segment ORDER BY segment"
    with_borders = ask_sql(result, query)
    monkeypatch.setattr(
        "splitmeans.queries.sql.replicate_segments",
        lambda result, replicates: np.repeat(
            squared_distances(
                replicates.synopsis.seen(replicates.synopsis.scaled_nodes),
                replicates.synopsis.seen(result.published.scaled_centres),
            ).argmin(axis=1)[:, None],
            replicates.n,
            axis=1,
        ),
    )
    without = ask_sql(result, query)
    for (wide,), (low,), (row,) in zip(
        with_borders.high, without.high, ([one[1]] for one in with_borders.rows), strict=True
    ):
        assert wide - row > low - row
