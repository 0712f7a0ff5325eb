"""Seeded runs of the golden studies, and everything of them that is compared, as arrays by part.

A run key depends on the hashes of study and plan, and the server's noise on the bytes of messages.
Both are pinned here: otherwise a changed format would change every decoy, and nothing could be
compared across it. The part `hashes` shows such a change, and only such.
"""

import contextlib
import dataclasses
import json
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from splitmeans import InsecureSeededNoise, Result, Study, VerticalKMeans
from splitmeans.party import node as party_node
from tests.golden.studies import Case, Tables

Array = npt.NDArray[Any]
# By part, such as "segments", and by what it is of that part.
Parts = dict[str, dict[str, Array]]

PARTS = (
    "hashes",
    "plan",
    "lengths",
    "counts",
    "releases",
    "synopsis",
    "segments",
    "labels",
    "figures",
)
_SAMPLED_ROWS = 500


def fitted_parts(case: Case) -> Parts:
    """Run a study in this process, every run of a series, and return what is compared."""
    study = Study.from_mapping(case.settings)
    model: VerticalKMeans | None = None
    runs: list[Parts] = []
    for tables in case.runs:
        seeded = VerticalKMeans(noise=InsecureSeededNoise(len(runs) + 1), random_state=len(runs))
        with pinned_run_key(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = seeded.fit_study(study, [*tables.values()], previous=model)
            runs.append(_model_parts(model, tables))
    return runs[0] if len(runs) == 1 else _numbered(runs)


@contextlib.contextmanager
def pinned_run_key() -> Iterator[None]:
    """Derive run keys from the parties' contributions alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(party_node, "transcript", lambda session, plan: bytes(32))
        yield


def result_parts(result: Result) -> Parts:
    """Return what a result tells, whether it is of a fit or was read from a folder."""
    synopsis = result.synopsis
    facts = result.privacy.to_mapping()
    by_party = {} if synopsis.centres is None else dict(enumerate(synopsis.centres))
    return {
        "hashes": {"study": _text(result.facts["study_hash"]), "plan": _text(result.facts["plan"])},
        "plan": {
            "certificate": _text(json.dumps(_noise_numbers(facts))),
            "local clusters": np.array([len(centres) for centres in by_party.values()]),
        },
        "counts": {
            "presence": result.presence,
            "stages": np.array(_numbers_in(result.released), dtype=np.int64),
        },
        "synopsis": {
            "nodes": synopsis.scaled_nodes,
            "weights": synopsis.weights,
            "cells": np.zeros(0) if synopsis.labels is None else synopsis.labels,
            **{f"centres {at}": centres for at, centres in by_party.items()},
            "rows": _sampled(result),
        },
        "segments": {
            "sizes": result.published.sizes,
            "centres": result.published.centres,
            "scaled centres": result.published_centres,
        },
        "figures": {
            "privacy": np.array(_costs(facts), dtype=np.float64),
            "epsilon": np.array(_largest(facts), dtype=np.float64),
            "intervals": _intervals(result),
        },
    }


def _noise_numbers(facts: Mapping[str, Any]) -> list[int | float]:
    """Return the numbers of the budget, of all noise, and of how many runs there are."""
    parts = [release["parts"] for release in facts["releases"]]
    runs = facts.get("series", {}).get("runs", ())
    return _numbers_in([facts["budget"], parts, [runs], facts.get("server_noise", ())])


def _costs(facts: Mapping[str, Any]) -> list[int | float]:
    """Return every stated cost."""
    series, observers = facts.get("series", {}), facts["observers"]
    runs = [series[key] for key in ("runs", "attended", "number") if key in series]
    alone = [release.get("cost") for release in facts["releases"]]
    bounds = [bound.get("cost") for one in observers for bound in one.get("bounds", ())]
    return _numbers_in([runs, facts["budget"], facts["total"], alone, bounds])


def _largest(facts: Mapping[str, Any]) -> list[int | float]:
    """Return the total with what it has for drawing, and the largest cost towards a party."""
    (party,) = [one for one in facts["observers"] if one["name"] == "party"]
    towards = [bound["cost"]["epsilon"] for bound in party["bounds"] if "cost" in bound]
    total, extra = facts["total"], facts["extra"]
    upper = [total["delta"], total["epsilon"], extra["loss"], extra["delta"]]
    return [*upper, *([max(towards)] if towards else [])]


def _model_parts(model: VerticalKMeans, tables: Tables) -> Parts:
    result = model.published_
    ran = model.result_
    parts = result_parts(result)
    parts["lengths"] = {
        sender: np.array([size for (who, _), size in ran.traffic.items() if who == sender])
        for sender in dict.fromkeys(who for who, _ in ran.traffic)
    }
    parts["releases"] = {
        f"{party} {at}": array
        for party, release in ran.server.releases.items()
        for at, array in enumerate(_arrays_of(release))
    }
    parts["labels"] = {}
    if not result.study.counts_only:
        parts["labels"]["joint"] = model.labels_
        for party, table in tables.items():
            parts["labels"][party] = _own_labels(result, party, table)
    return parts


def _own_labels(result: Result, party: str, table: pa.Table) -> Array:
    """Return the probability of each segment that a party finds for the first of its rows."""
    found = result.label(table.slice(0, _SAMPLED_ROWS), party=party)
    letters = result.published.letters
    return np.column_stack([found[f"segment {letter}"].to_numpy() for letter in letters])


def _sampled(result: Result) -> Array:
    if result.study.counts_only:
        return np.zeros(0)
    rows = result.synopsis.sample(_SAMPLED_ROWS, random_state=0)
    return np.array([json.dumps(column) for column in rows.to_pydict().values()])


def _intervals(result: Result) -> Array:
    """Return the ends of the intervals of sizes and of users at parties, where there are any."""
    ends: list[float] = []
    sizes = None if result.study.counts_only else result.size_intervals()
    if sizes is not None:
        ends += [*sizes.low, *sizes.high, *sizes.total]
    if result.presence.size:
        overlap = result.overlap()
        for count in (*overlap.patterns, *overlap.pairs, *overlap.parties, overlap.everyone):
            ends += [count.users, count.low, count.high]
    return np.array(ends, dtype=np.float64)


def _arrays_of(message: Any) -> list[Array]:
    """Return the arrays of a message and of the messages in it, in the order of their fields."""
    found: list[Array] = []
    for field in dataclasses.fields(message):
        value = getattr(message, field.name)
        if isinstance(value, np.ndarray):
            found.append(value)
        elif dataclasses.is_dataclass(value):
            found += _arrays_of(value)
    return found


def _numbers_in(value: Any) -> list[int | float]:
    """Return all numbers of nested plain values, in order; names of fields may change."""
    if isinstance(value, Mapping):
        return [number for item in value.values() for number in _numbers_in(item)]
    if isinstance(value, list | tuple):
        return [number for item in value for number in _numbers_in(item)]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return [value] if is_number else []


def _text(text: str) -> Array:
    return np.array(text)


def _numbered(runs: list[Parts]) -> Parts:
    # The plan of a later run names the result before it, which is dated.
    runs = [runs[0], *({**run, "hashes": {}} for run in runs[1:])]
    return {
        part: {
            f"run {number}, {name}": array
            for number, run in enumerate(runs, start=1)
            for name, array in run[part].items()
        }
        for part in PARTS
    }
