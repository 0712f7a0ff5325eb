"""`VerticalKMeans`: the protocol behind scikit-learn's interface, all parties in one process.

For experiments and for learning what a study would give. Between organisations each party runs its
own side; see `splitmeans.protocol`.
"""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from splitmeans import protocol
from splitmeans._types import FloatArray, LabelArray
from splitmeans.analysis.fitted import HasResult
from splitmeans.errors import ParameterError
from splitmeans.kmeans.distances import squared_distances
from splitmeans.plan.enough_users import learning_warnings
from splitmeans.plan.settle import make_plan
from splitmeans.privacy.noise import NoiseSource
from splitmeans.result.previous import Previous, previous_of
from splitmeans.result.result import remark_on
from splitmeans.result.signed import utc_now
from splitmeans.simulate.blocks import (
    ID_COLUMN,
    Blocks,
    check_id_columns,
    on_grid,
    prepare_blocks,
    prepare_with_warnings,
    read_blocks,
    read_ids,
    with_rows_expected,
)
from splitmeans.simulate.evaluation import normalised_loss
from splitmeans.simulate.frame_columns import read_columns
from splitmeans.simulate.joint_labels import joint_labels
from splitmeans.simulate.pooling import pooled_rows
from splitmeans.study import (
    ASSUMED_USERS,
    DEFAULT_DELTA,
    Budget,
    DecoyOptions,
    DetailOptions,
    PartySpec,
    Renewal,
    SketchOptions,
    Study,
)
from splitmeans.study.id_rules import AS_IS, ID_TYPES, IdRules
from splitmeans.synopsis.segments import letter
from splitmeans.table.prepare import PartyTable


class VerticalKMeans(HasResult, TransformerMixin, ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Differentially private k-means over columns that different organisations hold.

    Args:
        n_clusters: Number of segments, k.
        epsilon: Bound on what the server and readers of the result learn about a user, from all
            releases of all parties; another party has a figure of its own (`privacy_`).
        delta: What probabilities may exceed that bound by; below 1 / expected_users.
        membership: How parties tell which user is in which cluster: "decoy" or "sketch".
        n_local_clusters: Clusters per party, k', or "auto".
        bounds: Public bounds of the columns, from general knowledge; there is no default. One
            (low, high) for all columns; or a list with one entry per party, each a (low, high), a
            list with one (low, high) per column, or a dict by column name; or one dict by column
            name for all parties. What can be read in two ways is refused. "private", for all or
            in place of any (low, high), has the run learn the bounds, with noise and from a part
            of the budget; `result_.plan.parties` has them then.
        grid: How cell weights are found: "auto", "pairs" or "many".
        user_sets: "equal", or "partial" if some users are at some parties only (give ids then).
        population: With partial user sets of three or more parties "shared" for segments of the
            users at all of them (the default), "everyone" for those at one or more.
        expected_users: A public rough number of users, which need not be said. Delta must be below
            one over it, and a warning says if the tables are far from it. Where the run learns
            bounds or categories and it is not said, it is the rows' number, one digit of it: say
            it if what follows shall hold nothing of the tables but what the run released.
        categories: For columns of categories the public lists of all their values: a dict by
            column name, or a list with one such dict per party. "open" in place of a list, or for
            all columns of text, has the run learn those that many users have, in the same way.
        missing: What missing values become: a dict by column name, or a list with one such dict per
            party, with the rules of `Column.missing`; or one rule, or a few, for all columns that
            can have it, such as ("midpoint", "level"). Missing values are refused otherwise.
        weights: How much columns count in distances, 1 if not said: a dict by column name, or a
            list with one such dict per party.
        scaling: How columns count in the distances of the final k-means: "bounds" through their
            bounds, or "equal" each the same, one of categories too. Costs no privacy.
        id_rules: How ids are written: "as-is" (None), "text", "caseless", "integer", "uuid",
            "email" or "phone", or `IdRules`.
        sketch: Parameters of the cell sketch; None takes the defaults.
        decoy: Parameters of the decoy join; None takes the defaults.
        detail: True, or a share of what local clustering may cost, has parties also release how
            their columns spread within clusters, for synthetic rows that look like rows.
        runs: How many times the study is to be run as its users change; epsilon and delta are of
            all runs together then. `fit(X, previous=model)` is the next run.
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
            no segment. Worked out when it is first asked for: until then the model refers to the
            rows on the grid, and a copy or a pickle of it has the labels in their place.
        synopsis_: The weighted grid the centres come from; clusters for any other k.
        privacy_: What was released and what it cost; `privacy_.statement()` says it in words.
        published_: What a run would publish, as a `Result`: `report`, `save`, `to_pandas`, `label`,
            `rename` and plots. The model has the first five itself.
        result_: Everything the run produced, traffic included; for experiments.
        study_: The study that was run; without keys, which a simulation does not have.
        feature_names_in_: Names of the columns of `cluster_centers_`, as "party: column".
    """

    def __init__(
        self,
        n_clusters: int = 5,
        *,
        epsilon: float = 1.0,
        delta: float = DEFAULT_DELTA,
        membership: str = "decoy",
        n_local_clusters: int | str = "auto",
        bounds: Any = None,
        grid: str = "auto",
        user_sets: str = "equal",
        population: str | None = None,
        expected_users: int | None = None,
        categories: Any = None,
        missing: Any = None,
        weights: Any = None,
        id_rules: Any = None,
        scaling: str = "bounds",
        sketch: SketchOptions | None = None,
        decoy: DecoyOptions | None = None,
        detail: Any = None,
        runs: int = 1,
        allow_clipping: bool = False,
        noise: NoiseSource | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.delta = delta
        self.membership = membership
        self.n_local_clusters = n_local_clusters
        self.bounds = bounds
        self.grid = grid
        self.user_sets = user_sets
        self.population = population
        self.expected_users = expected_users
        self.categories = categories
        self.missing = missing
        self.weights = weights
        self.id_rules = id_rules
        self.scaling = scaling
        self.sketch = sketch
        self.decoy = decoy
        self.detail = detail
        self.runs = runs
        self.allow_clipping = allow_clipping
        self.noise = noise
        self.random_state = random_state

    def fit(self, X: Any, y: None = None, *, ids: Any = None, previous: Any = None) -> Self:
        """Run the protocol.

        Args:
            X: One array or table per party, a row per user, in a list, or in a dict by the parties'
                names: NumPy, pandas, polars, Arrow, or anything with an Arrow C stream, such as a
                DuckDB relation.
            y: Ignored.
            ids: The name of the column that has the users' ids, the same everywhere or one name
                per party; or one list of ids per party. Without it row i is the same user
                everywhere.
            previous: What this run of a series follows: a fitted model or a `Result` with the same
                parameters. None is the first run.
        """
        blocks = read_blocks(X)
        id_columns, id_lists = read_ids(ids, blocks)
        study = self._study(blocks, id_columns)
        expected = self.expected_users
        return self._fit(study, blocks, ids=id_lists, expected=expected, previous=previous)

    def fit_study(
        self,
        study: Study,
        X: Sequence[Any],
        *,
        ids: Sequence[Any] | None = None,
        previous: Any = None,
    ) -> Self:
        """Run the protocol of a given study, which then replaces the constructor's parameters.

        Args:
            study: The study.
            X: One table per party, in the study's order; tables with column names must have the
                party's id column, unless `ids` are given.
            ids: One list of user ids per party.
            previous: As for `fit`.
        """
        blocks = read_blocks(X)
        if ids is None:
            check_id_columns(study, blocks)
        # Nobody signs a simulation, so that nothing of it can be taken for a run.
        plain, expected = study.without_keys(), study.expected_users
        return self._fit(plain, blocks, ids=ids, expected=expected, previous=previous)

    def _fit(
        self,
        study: Study,
        blocks: Blocks,
        *,
        ids: Sequence[Any] | None,
        expected: int | None,
        previous: Any,
    ) -> Self:
        if self.noise is not None and not hasattr(self.noise, "spawn"):
            raise ParameterError("noise must be None or a noise source")
        tables = prepare_with_warnings(
            study, blocks, ids, expected=expected, allow_clipping=bool(self.allow_clipping)
        )
        if not study.all_public:
            study = with_rows_expected(study, tables) if expected is None else study
            for note in learning_warnings(make_plan(study).stages, users=study.assumed_users):
                warnings.warn(note, UserWarning, stacklevel=4)
        seeds = check_random_state(self.random_state).randint(np.iinfo(np.int32).max, size=4)
        rng = np.random.default_rng(seeds)
        before = _previous(previous, study)
        self.result_ = protocol.run(study, tables, noise=self.noise, rng=rng, previous=before)
        self.study_ = study
        self.synopsis_ = self.result_.server.synopsis
        self.cluster_centers_: FloatArray = self.result_.server.clustering.centres
        self.n_features_in_ = self.cluster_centers_.shape[1]
        self.feature_names_in_ = np.array(self.synopsis_.feature_names, dtype=object)
        self._not_published(written_at=utc_now())
        self.segment_names_ = tuple(letter(rank) for rank in range(len(self.cluster_centers_)))
        remark = remark_on(
            study, found=len(self.cluster_centers_), released=self.result_.plan.released
        )
        if remark is not None:
            warnings.warn(remark, UserWarning, stacklevel=4)
        self._labels: LabelArray | None = None
        self._tables: list[PartyTable] = tables
        return self

    @property
    def labels_(self) -> LabelArray:
        """The joint labels; see above."""
        if not hasattr(self, "_labels"):
            raise AttributeError("labels_: the model is not fitted yet; call fit")
        if self._labels is None:
            self._labels = self._nearest(on_grid(self.result_.plan, self._tables))
            self._tables = []
        return self._labels

    def __getstate__(self) -> Any:
        # Rows stay here: whoever stores a model does not expect them in it.
        _ = getattr(self, "labels_", None)
        return super().__getstate__()

    def predict(self, X: Sequence[Any]) -> LabelArray:
        """Return the nearest segment of each row; needs all parties' columns (simulation only)."""
        check_is_fitted(self, "cluster_centers_")
        return self._nearest(self._prepared(X))

    def transform(self, X: Any) -> Any:
        """Return the distance of each row to each centre, in scaled units (simulation only)."""
        check_is_fitted(self, "cluster_centers_")
        rows, _ = pooled_rows(self._prepared(X))
        centres = self.result_.server.clustering.scaled_centres
        return np.sqrt(squared_distances(self.synopsis_.seen(rows), self.synopsis_.seen(centres)))

    def get_feature_names_out(self, input_features: None = None) -> Any:
        """Return the names of what `transform` gives, for `set_output`."""
        check_is_fitted(self, "cluster_centers_")
        return np.array([f"distance to {name}" for name in self.segment_names_], dtype=object)

    def score(self, X: Sequence[Any], y: None = None) -> float:
        """Return minus the mean squared distance to the nearest centre, in scaled units.

        If there is no segment, to the middle of the bounds.
        """
        check_is_fitted(self, "cluster_centers_")
        tables = self._prepared(X)
        centres = self.result_.server.clustering.scaled_centres
        rows, _ = pooled_rows(tables)
        return -normalised_loss(self.synopsis_.seen(rows), self.synopsis_.seen(centres))

    # scikit-learn's own form has a script in it and does not show what was found.
    def _repr_html_(self) -> str:
        from splitmeans.synopsis.notebook import model_html

        if not hasattr(self, "result_"):
            return model_html(repr(self))
        found = (self.synopsis_, self.result_.server.clustering)
        return model_html(repr(self), found=found, privacy=self.privacy_, study=self.study_)

    def _repr_mimebundle_(self, **kwargs: Any) -> Mapping[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def _prepared(self, X: Any) -> list[PartyTable]:
        tables = prepare_blocks(self.study_, read_blocks(X), None)
        return on_grid(self.result_.plan, tables)

    def _nearest(self, tables: Sequence[PartyTable]) -> LabelArray:
        centres = self.result_.server.clustering.scaled_centres
        return joint_labels(tables, centres, synopsis=self.synopsis_)

    def _study(self, blocks: Blocks, id_columns: Sequence[str] | None) -> Study:
        for name, kind in (("sketch", SketchOptions), ("decoy", DecoyOptions)):
            if not isinstance(getattr(self, name), kind | None):
                raise ParameterError(f"{name} must be None or {kind.__name__}")
        columns = read_columns(
            blocks,
            bounds=self.bounds,
            categories=self.categories,
            missing=self.missing,
            weights=self.weights,
            id_columns=id_columns,
        )
        named = id_columns or [ID_COLUMN] * len(columns)
        parties = tuple(
            PartySpec(name=name, columns=own, id_column=id_column)
            for name, own, id_column in zip(blocks.parties, columns, named, strict=True)
        )
        expected = self.expected_users
        if expected is None and not all(column.is_settled for own in columns for column in own):
            expected = ASSUMED_USERS  # until the rows are read
        return Study(
            name="in-process",
            parties=parties,
            n_clusters=self.n_clusters,
            budget=Budget(epsilon=self.epsilon, delta=self.delta),
            membership=self.membership,
            n_local_clusters=self.n_local_clusters,
            grid=self.grid,
            user_sets=self.user_sets,
            population=self.population,
            ids=self._id_rules(),
            scaling=self.scaling,
            expected_users=expected,
            sketch=self.sketch or SketchOptions(),
            decoy=self.decoy or DecoyOptions(),
            detail=self._detail(),
            renewal=None if self.runs == 1 else Renewal(runs=self.runs),
        )

    def _detail(self) -> DetailOptions | None:
        if self.detail is None or isinstance(self.detail, DetailOptions):
            return self.detail
        if isinstance(self.detail, bool):
            return DetailOptions() if self.detail else None
        return DetailOptions(share=self.detail)

    def _id_rules(self) -> IdRules:
        if isinstance(self.id_rules, str):
            return IdRules(type=self.id_rules)
        if not isinstance(self.id_rules, IdRules | None):
            raise ParameterError(f"id_rules must be one of {', '.join(ID_TYPES)}, or IdRules")
        return self.id_rules or AS_IS


def _previous(given: Any, study: Study) -> Previous | None:
    """Return the result that a run follows, of a fitted model or a `Result`."""
    if given is None:
        return None
    result = getattr(given, "published_", given)
    from splitmeans.analysis.result import Result

    if not isinstance(result, Result):
        raise ParameterError("previous must be a fitted VerticalKMeans or a Result, or None")
    return previous_of(result, study)
