"""Who is at which parties, by class: from tables of two parties to the users who are asked for.

A table of two parties counts users who are at both, wherever else they are. The segments of a study
are of the users at all parties, or of everyone. How often the users of a class are at a party is
told by the table's "absent": of users with the same label at one party, how many the other one
does not have. The presence table tells how presence at several parties goes together. Both give the
users of each class at each way to be at parties, and these the tables of the users asked for.
Post-processing of released tables.
"""

import itertools

import numpy as np

from splitmeans._types import FloatArray
from splitmeans.shrinkage import shrinkage
from splitmeans.synopsis.decode.classes import LatentClasses
from splitmeans.synopsis.decode.counted import Counts, PairTables
from splitmeans.synopsis.decode.pooling import Pooling

# Rounds in which users of classes and of ways to be at parties are made to agree.
_ROUNDS = 30
# Shares of users are at least this, so that odds are finite.
_LEAST = 1e-3
# A cell of the users asked for has at most so many times the users of the table.
_MOST = 20.0


def tables_of_population(
    tables: PairTables, model: LatentClasses, counts: Counts, pooling: Pooling, *, everyone: bool
) -> PairTables:
    """Return tables of the users at all parties, or of everyone, each with their number as total.

    Args:
        tables: Users in each cell of each pair, of those at both parties.
        model: Classes that explain these tables.
        counts: The counts that they come from.
        pooling: Which local clusters are counted together.
        everyone: Whether users at some parties only are asked for as well.
    """
    by_pattern = _users_of_classes(model, counts, pooling)
    asked = by_pattern.sum(axis=0) if everyone else by_pattern[0]
    profiles = np.concatenate(model.profiles)
    cells = (profiles * asked) @ profiles.T
    found: PairTables = {}
    for pair, table in tables.items():
        here = counts.patterns[:, list(pair)].all(axis=1)
        at_both = by_pattern[here].sum(axis=0)
        seen = pooling.table((profiles * at_both) @ profiles.T, pair)
        wanted = pooling.table(cells, pair)
        ratio = np.divide(wanted, seen, out=np.zeros_like(seen), where=seen > 0)
        moved = table * np.minimum(ratio, _MOST * float(asked.sum()) / max(at_both.sum(), 1e-9))
        found[pair] = moved * (float(asked.sum()) / max(float(moved.sum()), 1e-9))
    return found


def _users_of_classes(model: LatentClasses, counts: Counts, pooling: Pooling) -> FloatArray:
    """Return the users of each class at each way to be at parties, shape (R, Z)."""
    odds = _odds_of_classes(model, counts, pooling)
    users = np.exp(counts.patterns @ np.log(odds)) * model.shares
    pairs = list(itertools.combinations(range(len(model.profiles)), 2))
    weights = np.stack([counts.patterns[:, list(pair)].all(axis=1) for pair in pairs]).sum(axis=0)
    for _ in range(_ROUNDS):
        users *= (counts.users / np.maximum(users.sum(axis=1), 1e-300))[:, np.newaxis]
        at_pairs = weights @ users
        users *= model.shares * at_pairs.sum() / np.maximum(at_pairs, 1e-300)
    users *= (counts.users / np.maximum(users.sum(axis=1), 1e-300))[:, np.newaxis]
    return np.asarray(users)


def _odds_of_classes(model: LatentClasses, counts: Counts, pooling: Pooling) -> FloatArray:
    """Return how much more often than others the users of a class are at a party, shape (S, Z).

    As a ratio of odds, from all tables that the party is in; the noisier, the nearer to 1.
    """
    n_parties, n_classes = len(model.profiles), len(model.shares)
    logs = np.zeros((n_parties, n_classes))
    if counts.deviation is None:
        return np.exp(logs)
    for here in range(n_parties):
        found, noise = [], []
        for other in (party for party in range(n_parties) if party != here):
            pair = (min(here, other), max(here, other))
            table = counts.tables[pair] if pair == (other, here) else counts.tables[pair].T
            # Rows are labels of the other party; the last column is who is not here.
            labels = pooling.labels_of(other, here)
            profile = np.zeros((table.shape[0] - 1, n_classes))
            np.add.at(profile, labels, model.profiles[other])
            joint = profile * model.shares
            of_class = joint / np.maximum(joint.sum(axis=1, keepdims=True), 1e-300)
            absent = table[:-1, -1] @ of_class
            users = np.maximum(table[:-1].sum(axis=1) @ of_class, 1.0)
            away = np.clip(absent / users, _LEAST, 1 - _LEAST)
            total = np.clip(absent.sum() / users.sum(), _LEAST, 1 - _LEAST)
            found.append(np.log((1 - away) / away) - np.log((1 - total) / total))
            spread = counts.deviation * np.sqrt(np.square(of_class).sum(axis=0))
            noise.append(spread / (users * away * (1 - away)))
        precise = 1 / np.square(np.array(noise))
        mean = (np.array(found) * precise).sum(axis=0) / precise.sum(axis=0)
        logs[here] = mean * shrinkage(mean, np.sqrt(1 / precise.sum(axis=0)))
    return np.exp(logs)
