"""What an observer gets from one party's counts and labels, with and without a user.

Every function runs the code of the mechanism itself. Where noise is independent for every cluster
or user, one call with many of them is many trials.
"""

import numpy as np
import pyarrow as pa

from audits.case import Scores
from splitmeans._types import FloatArray
from splitmeans.membership.independent.encode import encode as encode_histogram
from splitmeans.membership.independent.law import NoisyHistogram
from splitmeans.membership.ldp.encode import encode as encode_response
from splitmeans.membership.ldp.law import RandomisedLabels, hash_labels
from splitmeans.party.stages import release_stage
from splitmeans.plan.stages import Stage
from splitmeans.privacy.noise import NoiseSource
from splitmeans.table.prepare import PartyTable

# Users beside the one who comes or goes.
_OTHERS = 5


def user_count(stage: Stage, trials: int, noise: NoiseSource) -> Scores:
    """The released number of users, of the first party that the stage names."""

    def released(n: int) -> FloatArray:
        ids = pa.array([str(i) for i in range(n)], type=pa.large_string())
        table = PartyTable(
            party=stage.parties[0], ids=ids, raw_rows=np.zeros((n, 1), dtype=np.int64)
        )
        drawn = [release_stage(stage, 1, table, noise=noise).values[0] for _ in range(trials)]
        return np.array(drawn, dtype=np.float64)

    return Scores(with_user=released(_OTHERS + 1), without=released(_OTHERS))


def histogram(law: NoisyHistogram, trials: int, noise: NoiseSource) -> Scores:
    """A noisy cluster size; every cluster of one call is a trial."""

    def sizes(users: int) -> FloatArray:
        labels = np.arange(users, dtype=np.int32)
        message = encode_histogram(law, labels=labels, n_local_clusters=trials, noise=noise)
        return message.noisy_counts.astype(np.float64)

    return Scores(with_user=sizes(trials), without=sizes(0))


def randomised_label(law: RandomisedLabels, trials: int, noise: NoiseSource) -> Scores:
    """One user's report, for label 1 against label 0: this relation replaces, it adds nobody."""

    def support(label: int) -> FloatArray:
        labels = np.full(trials, label, dtype=np.int32)
        message = encode_response(law, labels=labels, noise=noise)
        of_one, of_zero = (
            hash_labels(message.seeds, np.full(trials, value), n_values=law.n_values)
            if law.uses_hashing
            else np.full(trials, value)
            for value in (1, 0)
        )
        match = (message.reports == of_one).astype(np.float64)
        return np.asarray(match - (message.reports == of_zero))

    return Scores(with_user=support(1), without=support(0))
