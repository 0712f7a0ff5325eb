"""What the server gets from several runs of a series, and from a study of counts alone."""

import functools

import numpy as np
import pyarrow as pa

from audits import decoy_views
from audits.case import Scores, scores_of_calls
from audits.sketch_views import fresh_key
from splitmeans._types import FloatArray
from splitmeans.membership.decoy.join import join_counts
from splitmeans.membership.decoy.law import DecoyLaw
from splitmeans.membership.decoy.layout import high_bits_of
from splitmeans.party.release import release_party
from splitmeans.plan.plan import Plan
from splitmeans.privacy.noise import NoiseSource
from splitmeans.table.prepare import PartyTable
from splitmeans.wire.messages import DecoyMessage


def cells_of_runs(law: DecoyLaw, trials: int, noise: NoiseSource, *, runs: int) -> Scores:
    """How many records the server counts in the user's cells in all runs that the user is in.

    Every run has a key of its own, so its decoys have nothing to do with those of the others.
    """
    found = [
        decoy_views.changed_cell(law, trials, noise.spawn(f"run {number}"))
        for number in range(1, runs + 1)
    ]
    with_user, without = (functools.reduce(np.add, side) for side in zip(*found, strict=True))
    return Scores(with_user=with_user, without=without)


def counts_alone(plan: Plan, trials: int, noise: NoiseSource) -> Scores:
    """How many records the server counts of users at just the user's parties.

    Whole releases of the parties of a study of counts alone. Every way to be at some of them has a
    user of its own, or none has, so that one call is many trials.
    """
    names = plan.study.party_names
    everyone = tuple(range(len(names)))
    absent = np.indices((2,) * len(names)).reshape(len(names), -1)[:, :-1]
    rng = np.random.default_rng(0)

    law = plan.membership
    assert isinstance(law, DecoyLaw), "a study with decoys"

    def one_call(present: bool) -> FloatArray:
        key = fresh_key(noise)
        messages = []
        for party, of_party in zip(names, absent, strict=True):
            own = np.flatnonzero(of_party == 0) if present else np.zeros(0, dtype=np.int64)
            ids = pa.array([f"user {number}" for number in own], type=pa.large_string())
            nothing = np.zeros((len(own), 0), dtype=np.int64)
            table = PartyTable(party=party, ids=ids, raw_rows=nothing)
            release = release_party(plan, table, run_key=key, noise=noise, rng=rng)
            assert isinstance(release.membership, DecoyMessage)
            messages.append(release.membership)
        counted = join_counts(
            messages,
            groups=(everyone,),
            n_local_clusters=plan.n_local_clusters,
            high_bits=high_bits_of(law, plan),
            presence=True,
        )
        return np.asarray(counted[everyone].ravel()[:-1], dtype=np.float64)

    return scores_of_calls(one_call, trials=trials)
