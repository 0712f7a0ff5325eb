"""What a party computes from its rows in a stage, before its main release.

Everything here sees raw rows; everything it returns is a release with an event (`plan.stages`).
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np

from splitmeans._types import IntArray
from splitmeans.local.law import gaussian_counts
from splitmeans.party.open_categories import learn_categories
from splitmeans.party.private_bounds import learn_bounds
from splitmeans.plan.bounds_stage import BOUNDS, BoundsLaw, encode_bounds
from splitmeans.plan.categories_stage import CATEGORIES, CategoriesLaw, encode_names
from splitmeans.plan.size_stage import SIZE, SizeLaw
from splitmeans.plan.stages import Stage
from splitmeans.privacy.noise import NoiseSource
from splitmeans.table.walk.interface import Table
from splitmeans.wire.messages import StageRelease

_Side: TypeAlias = Callable[[Stage, Table, NoiseSource], IntArray]


def release_stage(stage: Stage, number: int, table: Table, *, noise: NoiseSource) -> StageRelease:
    """Release what a stage asks of a party.

    Guarantee: the event of the stage's law.
    """
    return StageRelease(stage=number, values=STAGE_SIDES[stage.name](stage, table, noise))


def _size(stage: Stage, table: Table, noise: NoiseSource) -> IntArray:
    """The number of users; one more or less user moves it by one."""
    raw_counts = np.array([len(table)], dtype=np.int64)
    law = stage.law
    assert isinstance(law, SizeLaw), "the number of users has no other law"
    noisy = gaussian_counts(raw_counts, scale=law.scale, noise=noise)
    return np.rint(noisy).astype(np.int64)


def _bounds(stage: Stage, table: Table, noise: NoiseSource) -> IntArray:
    """Bounds of the party's private columns."""
    law = stage.law_of(table.party)
    assert isinstance(law, BoundsLaw), "bounds have no other law"
    return np.array(encode_bounds(learn_bounds(law, table.rows, noise=noise)), dtype=np.int64)


def _categories(stage: Stage, table: Table, noise: NoiseSource) -> IntArray:
    """Names of categories that many users of the party have."""
    law = stage.law_of(table.party)
    assert isinstance(law, CategoriesLaw), "categories have no other law"
    learned = learn_categories(law, table.rows, table.names, noise=noise)
    return np.array(encode_names(learned), dtype=np.int64)


# By the name of the stage.
STAGE_SIDES: Mapping[str, _Side] = {SIZE: _size, BOUNDS: _bounds, CATEGORIES: _categories}
