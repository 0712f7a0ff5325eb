"""`VerticalKMeans`: the protocol behind scikit-learn's interface, all parties in one process.

For experiments and for learning what a study would give. Between organisations each party runs its
own side; see `splitmeans.protocol`.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from splitmeans import protocol
from splitmeans._types import FloatArray, LabelArray
from splitmeans.errors import DataError, ParameterError
from splitmeans.privacy.noise import NoiseSource
from splitmeans.simulate.evaluation import assign_labels, normalised_loss
from splitmeans.simulate.pooling import pooled_blocks, pooled_rows
from splitmeans.study import (
    DEFAULT_DELTA,
    Budget,
    Column,
    DecoyOptions,
    PartySpec,
    SketchOptions,
    Study,
)
from splitmeans.study.column_bounds import read_bounds
from splitmeans.study.id_rules import AS_IS
from splitmeans.synopsis.clustering import about_found
from splitmeans.synopsis.segments import letter
from splitmeans.table.checks.facts import TableFacts, ignore_facts, rows_note
from splitmeans.table.frames import as_stream, listed_names
from splitmeans.table.prepare import PartyTable, prepare_table


class VerticalKMeans(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Differentially private k-means over columns that different organisations hold.

    Args:
        n_clusters: Number of segments, k.
        epsilon: Total privacy loss of one user, over all parties and releases.
        delta: What probabilities may exceed that bound by; below 1 / expected_users.
        membership: How parties tell which user is in which cluster: "decoy", "sketch",
            "sketch-paper", "ldp", "independent" or "exact" (not private).
        local: Local clustering: "auto", "guided-lloyd", "dplsf", "dplloyd" or "plain" (not
            private).
        n_local_clusters: Clusters per party, k', or "auto".
        accounting: "tight" composes exact privacy losses, "paper" adds costs up as published.
        bounds: Public bounds of the columns, from general knowledge; there is no default. One
            (low, high) for all columns; or a list with one entry per party, each a (low, high), a
            list with one (low, high) per column, or a dict by column name; or one dict by column
            name for all parties. What can be read in two ways is refused.
        grid: How cell weights are found: "auto", "joint", "pairs", "pairs-paper" or "many".
        user_sets: "equal", or "partial" if some users are at some parties only (give ids then).
        population: With partial user sets of three or more parties "shared" for segments of the
            users at all of them (the default), "everyone" for those at one or more.
        expected_users: A public rough number of users, which need not be said. Delta must be below
            one over it, and a warning says if the tables are far from it.
        sketch: Parameters of the sketch methods; None takes the paper's.
        decoy: Parameters of the decoy join; None takes the defaults.
        allow_clipping: Fit also if more than half of a column's values lie outside the bounds and
            become the bound; such a table is refused otherwise. Fewer give a warning.
        noise: Source of privacy noise; None takes the operating system's.
        random_state: Seeds what is not privacy noise.

    Attributes:
        cluster_centers_: Segment centres, shape (k, all columns), own units, party order; the
            largest first, and only those with users. So k is below `n_clusters`, with a warning,
            where fewer places have users, and 0 if the noisy counts hold nobody.
        segment_names_: Their letters, A the largest, as in result folders and reports.
        labels_: Row of `cluster_centers_` nearest to each user (simulation only); -1 if there is
            no segment.
        synopsis_: The weighted grid the centres come from; clusters for any other k.
        privacy_: What was released and what it cost; `privacy_.statement()` says it in words.
        result_: Everything the run produced.
        study_: The study that was run.
    """

    def __init__(
        self,
        n_clusters: int = 5,
        *,
        epsilon: float = 1.0,
        delta: float = DEFAULT_DELTA,
        membership: str = "decoy",
        local: str = "auto",
        n_local_clusters: int | str = "auto",
        accounting: str = "tight",
        bounds: Any = None,
        grid: str = "auto",
        user_sets: str = "equal",
        population: str | None = None,
        expected_users: int | None = None,
        sketch: SketchOptions | None = None,
        decoy: DecoyOptions | None = None,
        allow_clipping: bool = False,
        noise: NoiseSource | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.delta = delta
        self.membership = membership
        self.local = local
        self.n_local_clusters = n_local_clusters
        self.accounting = accounting
        self.bounds = bounds
        self.grid = grid
        self.user_sets = user_sets
        self.population = population
        self.expected_users = expected_users
        self.sketch = sketch
        self.decoy = decoy
        self.allow_clipping = allow_clipping
        self.noise = noise
        self.random_state = random_state

    def fit(self, X: Sequence[Any], y: None = None, *, ids: Sequence[Any] | None = None) -> Self:
        """Run the protocol.

        Args:
            X: One array or table per party, a row per user: NumPy, pandas, polars, Arrow, or
                anything with an Arrow C stream, such as a DuckDB relation.
            y: Ignored.
            ids: One list of user ids per party; without it row i is the same user everywhere.
        """
        blocks = _check_blocks(X)
        return self._fit(self._study(blocks), blocks, ids=ids)

    def fit_study(
        self,
        study: Study,
        X: Sequence[Any],
        *,
        ids: Sequence[Any] | None = None,
    ) -> Self:
        """Run the protocol of a given study, which then replaces the constructor's parameters.

        Args:
            study: The study.
            X: One table per party, in the study's order; tables with column names must have the
                party's id column, unless `ids` are given.
            ids: One list of user ids per party.
        """
        blocks = _check_blocks(X)
        if ids is None:
            _check_id_columns(study, blocks)
        return self._fit(study, blocks, ids=ids)

    def _fit(self, study: Study, X: Sequence[Any], *, ids: Sequence[Any] | None) -> Self:
        if self.noise is not None and not hasattr(self.noise, "spawn"):
            raise ParameterError("noise must be None or a noise source")
        if study.membership_facts.warning is not None:
            warnings.warn(study.membership_facts.warning, UserWarning, stacklevel=4)
        facts: list[TableFacts] = []
        tables = _prepare(
            study, X, ids, notice=facts.append, allow_clipping=bool(self.allow_clipping)
        )
        _warn(study, facts)
        _check_rows(study, tables, aligned_by_row=ids is None and not _have_ids(study, X))
        state = check_random_state(self.random_state)
        rng = np.random.default_rng(state.randint(np.iinfo(np.int32).max, size=4))
        self.result_ = protocol.run(study, tables, noise=self.noise, rng=rng)
        self.study_ = study
        self.synopsis_ = self.result_.server.synopsis
        self.privacy_ = self.result_.privacy
        self.cluster_centers_: FloatArray = self.result_.server.clustering.centres
        self.n_features_in_ = self.cluster_centers_.shape[1]
        self.segment_names_ = tuple(letter(rank) for rank in range(len(self.cluster_centers_)))
        remark = about_found(len(self.cluster_centers_), study)
        if remark is not None:
            warnings.warn(remark, UserWarning, stacklevel=4)
        # Simulation only: no participant of a real run can compute these joint labels.
        self.labels_ = self._nearest(tables)
        return self

    def predict(self, X: Sequence[Any]) -> LabelArray:
        """Return the nearest segment of each row; needs all parties' columns (simulation only)."""
        check_is_fitted(self)
        return self._nearest(_prepare_aligned(self.study_, X))

    def score(self, X: Sequence[Any], y: None = None) -> float:
        """Return minus the mean squared distance to the nearest centre, in scaled units.

        If there is no segment, to the middle of the bounds.
        """
        check_is_fitted(self)
        tables = _prepare_aligned(self.study_, X)
        centres = self.result_.server.clustering.scaled_centres
        return -normalised_loss(pooled_rows(tables)[0], centres)

    def fit_predict(
        self,
        X: Sequence[Any],
        y: None = None,
        **kwargs: Any,
    ) -> LabelArray:
        """Fit and return the joint labels (simulation only)."""
        return self.fit(X, **kwargs).labels_

    # scikit-learn's own form has a script in it and does not show what was found.
    def _repr_html_(self) -> str:
        from splitmeans.synopsis.notebook import model_html

        if not hasattr(self, "result_"):
            return model_html(repr(self))
        found = (self.synopsis_, self.result_.server.clustering)
        return model_html(repr(self), found=found, privacy=self.privacy_)

    def _repr_mimebundle_(self, **kwargs: Any) -> Mapping[str, str]:
        from splitmeans._html import bundle

        return bundle(repr(self), self._repr_html_())

    def _nearest(self, tables: Sequence[PartyTable]) -> LabelArray:
        centres = self.result_.server.clustering.scaled_centres
        blocks = pooled_blocks(tables)
        if len(centres) == 0:
            return np.concatenate([np.full(len(rows), -1, dtype=np.int32) for rows in blocks])
        return np.concatenate([assign_labels(rows, centres) for rows in blocks])

    def _study(self, blocks: Sequence[Any]) -> Study:
        for name, kind in (("sketch", SketchOptions), ("decoy", DecoyOptions)):
            if not isinstance(getattr(self, name), kind | None):
                raise ParameterError(f"{name} must be None or {kind.__name__}")
        parties = tuple(
            PartySpec(name=f"party{position + 1}", columns=columns)
            for position, columns in enumerate(_columns(blocks, self.bounds))
        )
        return Study(
            name="in-process",
            parties=parties,
            n_clusters=self.n_clusters,
            budget=Budget(epsilon=self.epsilon, delta=self.delta),
            membership=self.membership,
            local=self.local,
            n_local_clusters=self.n_local_clusters,
            grid=self.grid,
            accounting=self.accounting,
            user_sets=self.user_sets,
            population=self.population,
            ids=AS_IS,  # the lists of ids are compared as they are
            expected_users=self.expected_users,
            sketch=self.sketch or SketchOptions(),
            decoy=self.decoy or DecoyOptions(),
        )


def _check_blocks(blocks: Any) -> list[Any]:
    if isinstance(blocks, np.ndarray | str | bytes) or not isinstance(blocks, Sequence):
        raise DataError(
            f"X must be a list with one array or data frame per party, got {type(blocks).__name__}"
        )
    if len(blocks) < 2:
        raise DataError(f"X must hold at least 2 parties, got {len(blocks)}")
    # A stream is opened once, here: its names are looked at before its rows are read.
    streams = [as_stream(block, where=f"party {at + 1}") for at, block in enumerate(blocks)]
    return [
        block if stream is None else stream for block, stream in zip(blocks, streams, strict=True)
    ]


def _check_id_columns(study: Study, blocks: Sequence[Any]) -> None:
    """Refuse a named table without its id column: row numbers would join the wrong people."""
    for party, block in zip(study.parties, blocks, strict=False):
        names = listed_names(block)
        if names is not None and party.id_column not in names:
            raise DataError(
                f"the table of party {party.name!r} must have the id column {party.id_column!r} "
                "that the study names; add it, or give ids"
            )


def _have_ids(study: Study, blocks: Sequence[Any]) -> bool:
    """Whether every party's table has the id column that the study names."""
    return all(
        party.id_column in (listed_names(block) or ())
        for party, block in zip(study.parties, blocks, strict=True)
    )


def _columns(blocks: Sequence[Any], bounds: Any) -> list[tuple[Column, ...]]:
    """Make column specifications from the blocks' column names and the bounds argument."""
    names = [_column_names(block, position) for position, block in enumerate(blocks)]
    return [
        tuple(
            Column(name=name, low=low, high=high)
            for name, (low, high) in zip(own, pairs, strict=True)
        )
        for own, pairs in zip(names, read_bounds(bounds, names), strict=True)
    ]


def _column_names(block: Any, position: int) -> list[str]:
    names = listed_names(block)
    if names is not None:
        return names
    try:
        shape = np.shape(block)
    except ValueError as problem:
        raise DataError(
            f"party {position + 1} must be a table whose rows have equally many columns"
        ) from problem
    if len(shape) != 2:
        raise DataError(
            f"party {position + 1} must be a table of rows and columns, got shape {shape}"
        )
    return [f"x{number}" for number in range(shape[1])]


def _warn(study: Study, facts: Sequence[TableFacts]) -> None:
    """Say what `party check` would say to each party; nobody here is anybody else."""
    for party, own in zip(study.parties, facts, strict=True):
        notes = [str(column) for column in own.clipped]
        rows = rows_note(own.ids.rows, expected=study.expected_users, delta=study.budget.delta)
        for note in notes if rows is None else [*notes, rows]:
            warnings.warn(f"party {party.name!r}: {note}", UserWarning, stacklevel=5)


def _prepare(
    study: Study,
    blocks: Sequence[Any],
    ids: Sequence[Any] | None,
    *,
    notice: Callable[[TableFacts], None] = ignore_facts,
    allow_clipping: bool = True,
) -> list[PartyTable]:
    if len(blocks) != len(study.parties):
        raise DataError(f"X must hold {len(study.parties)} parties, got {len(blocks)}")
    if ids is not None:
        n_lists = len(ids) if hasattr(ids, "__len__") else 0
        if n_lists != len(blocks):
            raise DataError(f"ids must be one list per party ({len(blocks)}), got {n_lists}")
    return [
        prepare_table(
            party,
            block,
            ids=None if ids is None else ids[position],
            rules=study.id_rules,
            notice=notice,
            allow_clipping=allow_clipping,
        )
        for position, (party, block) in enumerate(zip(study.parties, blocks, strict=True))
    ]


def _prepare_aligned(study: Study, blocks: Any) -> list[PartyTable]:
    """Prepare blocks whose row i is the same user everywhere."""
    tables = _prepare(study, _check_blocks(blocks), None)
    _check_equal_rows(tables)
    return tables


def _check_equal_rows(tables: Sequence[PartyTable]) -> None:
    rows = [len(table.raw_rows) for table in tables]
    if len(set(rows)) > 1:
        raise DataError(
            f"parties must have the same number of rows, got {rows}; give ids to align users"
        )


def _check_rows(study: Study, tables: Sequence[PartyTable], *, aligned_by_row: bool) -> None:
    if aligned_by_row:
        _check_equal_rows(tables)
    rows = [len(table.raw_rows) for table in tables]
    if study.n_local_clusters != "auto" and int(study.n_local_clusters) > min(rows):
        raise ParameterError(
            f"n_local_clusters must be <= the number of rows ({min(rows)}), "
            f"got {study.n_local_clusters}"
        )
    if study.n_clusters > min(rows):
        raise ParameterError(
            f"n_clusters must be <= the number of rows ({min(rows)}), got {study.n_clusters}"
        )
