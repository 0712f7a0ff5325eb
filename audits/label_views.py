"""What an observer gets from one party's number of users and labels, with and without a user.

Every function runs the code of the mechanism itself. Noise is independent for every label, so one
call with many of them is many trials.
"""

import numpy as np
import pyarrow as pa

from audits.case import Scores
from splitmeans._types import FloatArray
from splitmeans.membership.decoy.direct_labels import DirectLabels, randomise
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


def randomised_label(response: DirectLabels, trials: int, noise: NoiseSource) -> Scores:
    """One user's report, for label 1 against label 0: this relation replaces, it adds nobody."""

    def support(label: int) -> FloatArray:
        labels = np.full(trials, label, dtype=np.int32)
        reports = randomise(response, labels, noise=noise)
        return np.asarray((reports == 1).astype(np.float64) - (reports == 0))

    return Scores(with_user=support(1), without=support(0))
