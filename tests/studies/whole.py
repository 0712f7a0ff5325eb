"""One random study run whole: plan, all participants, result folder, report, labels, re-reading.

Before a release a study may be refused, in words; from the first release on nothing may raise.
"""

import math
import random
import re
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from splitmeans import protocol
from splitmeans.errors import ParameterError, PrivacyError
from splitmeans.forecasting.forecast import forecast
from splitmeans.forecasting.rough_plan import rough_plan
from splitmeans.membership.sketch.law import SketchLaw
from splitmeans.party.label_file import write_labels
from splitmeans.party.labels import segment_probabilities
from splitmeans.plan.message_sizes import message_sizes
from splitmeans.plan.plan import Plan
from splitmeans.plan.settle import make_plan
from splitmeans.privacy.noise import InsecureSeededNoise, SecureNoise
from splitmeans.report.build import build_report
from splitmeans.report.html import render
from splitmeans.result.previous import Previous, previous_of
from splitmeans.result.result import Result
from splitmeans.result.write import write_result
from splitmeans.study import Study
from splitmeans.study.features import features_of
from splitmeans.synopsis.column_places import column_places
from splitmeans.synopsis.synopsis import Synopsis
from splitmeans.table.prepare import PartyTable, prepare_table
from splitmeans.table.settled import settled_in_memory
from splitmeans.wire.envelope import Envelope
from splitmeans.wire.messages import PublishedResult
from tests.studies.generate import Case

# What a case may cost, so that thousands of them end in minutes: records of all messages, and
# products of cells or points with what is done to each.
_MOST_RECORDS = 300_000
_MOST_WORK = 6e6


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of a case: "ran", "refused" before a release, or "too large" for this test."""

    kind: str
    reason: str = ""


class AfterRelease(Exception):
    """Something raised, or was wrong, where nothing may; `stage` says where."""

    def __init__(self, stage: str, problem: BaseException) -> None:
        super().__init__(f"{stage}: {type(problem).__name__}: {problem}")
        self.stage, self.problem = stage, problem


def run_whole(case: Case, *, with_report: bool = False) -> Outcome:
    """Run a case; raise `AfterRelease` if it fails where it may not.

    Args:
        case: The study and its tables.
        with_report: Also forecast, build the report and write labels to a file: most of the time.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with _stage("study and plan"):
            try:
                study = case.study()
                if too_large(rough_plan(study), users=case.users):
                    return Outcome(kind="too large")
                make_plan(study)
            except (ParameterError, PrivacyError) as problem:
                return Outcome(kind="refused", reason=reason_class(str(problem)))
        if with_report:
            with _stage("forecast"):
                forecast(study).to_mapping()
        with _stage("tables"):
            tables = [
                prepare_table(party, arrow_table(study, case, party.name), rules=study.id_rules)
                for party in study.parties
            ]
        _run(case, study, tables, with_report=with_report)
    return Outcome(kind="ran")


def arrow_table(study: Study, case: Case, party: str) -> pa.Table:
    """Return a party's table; columns without any value get the type that the study says."""
    columns = {column.name: column for column in study.party(party).columns}
    table = case.tables[party]
    return pa.table(
        {
            name: pa.array(
                values,
                None
                if name not in columns
                else pa.string()
                if columns[name].is_categorical
                else pa.float64(),
            )
            for name, values in table.items()
        }
    )


def reason_class(message: str) -> str:
    """Return a message without what differs between studies: names and numbers."""
    text = re.sub(r"'[^']*'|\"[^\"]*\"", "...", message)
    return re.sub(r"-?\d[\d.,e+-]*", "#", text)[:90]


@contextmanager
def _stage(name: str) -> Iterator[None]:
    try:
        yield
    except AfterRelease:
        raise
    except Exception as problem:
        raise AfterRelease(name, problem) from problem


def too_large(plan: Plan, *, users: int) -> bool:
    """Whether a study takes more than thousands of studies in minutes can have."""
    records = sum(message_sizes(plan, users=users).records.values())
    n_parties, k, width = len(plan.study.parties), plan.study.n_clusters, max(plan.n_local_clusters)
    n_features = sum(len(features_of(party)) for party in plan.parties)
    n_pairs = n_parties * (n_parties - 1) // 2
    work: float = 20_000 * k * n_features + (width * n_parties) ** 2 * k
    if isinstance(plan.membership, SketchLaw):
        law = plan.membership
        work += n_pairs * width**2 * (law.repetitions + 65 * 20 / plan.study.sketch.base)
    return records > _MOST_RECORDS or work > _MOST_WORK


def _run(
    case: Case,
    study: Study,
    tables: list[PartyTable],
    *,
    with_report: bool,
    previous: Previous | None = None,
) -> None:
    """Run a study and use its result; of a series, the first two runs."""
    published: list[PublishedResult] = []

    def watch(envelope: Envelope, size: int) -> None:
        if isinstance(envelope.message, PublishedResult):
            published.append(envelope.message)

    with _stage("run"):
        found = protocol.run(
            study,
            tables,
            noise=SecureNoise() if case.secure else InsecureSeededNoise(case.seed),
            rng=np.random.default_rng(case.seed),
            on_message=watch,
            previous=previous,
        )
        assert len(published) == len(study.parties), "not every party got the result"
    with _stage("what the server found"):
        check_numbers(found.server.synopsis, found.server.clustering)
        assert found.privacy.statement()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "result"
        with _stage("writing the result"):
            write_result(
                folder,
                found.plan,
                published[0],
                run="1" if previous is None else "2",
                participant=study.party_names[0],
                transcript=[("taken", "slot", "ab" * 32)],
                secure_noise=case.secure,
            )
        with _stage("reading the result"):
            result = Result.read(folder)
            assert result.study == study
            for name in ("scaled_nodes", "weights", "labels"):
                same = np.array_equal(
                    getattr(result.synopsis, name), getattr(found.server.synopsis, name)
                )
                assert same, f"{name} changed on the way"
            check_numbers(result.synopsis, result.published.clustering)
        _use(case, result, tables, with_report=with_report, folder=Path(place))
    if study.n_runs > 1 and previous is None:
        last = previous_of(result, study)
        _run(case, study, tables, with_report=with_report, previous=last)


def _use(
    case: Case, result: Result, tables: list[PartyTable], *, with_report: bool, folder: Path
) -> None:
    """Do all that a participant can do with a result."""
    synopsis, published = result.synopsis, result.published
    if result.study.counts_only:
        _use_counts(result)
        return
    table = tables[case.seed % len(tables)]
    settled = make_plan(result.study, released=result.released).party(table.party)
    table = settled_in_memory(table, result.study.party(table.party), settled)
    with _stage("published segments"):
        assert published.k <= result.study.n_clusters
        assert (published.k == 0) == (synopsis.total == 0)
        assert (published.sizes > 0).all(), "a segment has nobody"
        assert result.remark is not None or published.k == result.study.n_clusters
    if published.k == 0:
        with _stage("report of a run that counts nobody"):
            assert "</html>" in render(build_report(result))
        return
    with _stage("labels"):
        shares = segment_probabilities(
            table, synopsis, centres=published.clustering, party=table.party
        )
        assert shares.shape == (len(table), published.k)
        assert np.isfinite(shares).all()
        assert shares.min() >= 0
        np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-9)
    with _stage("other numbers of segments"):
        for k in {2, 3, min(7, result.most_segments)}:
            if 2 <= k <= result.most_segments:
                check_numbers(synopsis, result.segments(k).clustering)
        curve = result.compare_k([2, result.study.n_clusters])
        assert np.isfinite([*curve.losses, *curve.silhouettes]).all()
    with _stage("synthetic rows"):
        assert len(synopsis.sample(10, random_state=1)) == 10
        estimate = synopsis.estimated_loss(published.clustering)
        assert math.isfinite(estimate.value)
    with _stage("questions"):
        _ask(case, synopsis)
    if with_report:
        with _stage("report"):
            data = build_report(result, ks=(2, 3))
            data.to_json()
            assert "</html>" in render(data)
        with _stage("label file"):
            _check_label_file(case, result, table.party, folder=folder)


def _use_counts(result: Result) -> None:
    with _stage("counts alone"):
        found = result.overlap()
        for count in (*found.patterns, *found.pairs, *found.parties, found.everyone):
            assert math.isfinite(count.users)
            assert 0 <= count.low <= count.high < math.inf
        assert "</html>" in render(build_report(result))


def _ask(case: Case, synopsis: Synopsis) -> None:
    """Ask about two columns of different parties, and about correlations."""
    chance = random.Random(case.seed)
    places = column_places(synopsis)
    of_party = [[place for place in places if place.party == at] for at in (0, 1)]
    first, second = (chance.choice(some) for some in of_party)
    table = synopsis.table(first.name, second.name)
    assert np.isfinite(table.users).all()
    assert (table.users >= 0).all()
    if table.low is not None and table.high is not None:
        assert (table.low <= table.high).all()
    numbers = [place.name for place in places if not place.levels][:6]
    if len(numbers) > 1:
        found = synopsis.correlation(*numbers).values
        assert not np.any(np.abs(found) > 1 + 1e-9)


def _check_label_file(case: Case, result: Result, party: str, *, folder: Path) -> None:
    pq.write_table(arrow_table(result.study, case, party), folder / "rows.parquet")
    suffix = ".csv" if case.seed % 2 else ".parquet"
    output = folder / f"labels{suffix}"
    rows = write_labels(
        result,
        folder / "rows.parquet",
        output,
        party=party,
        segments=result.published,
        progress=lambda *args, **kwargs: None,
        allow_clipping=True,  # some tables lie outside their bounds on purpose
    )
    assert rows == len(next(iter(case.tables[party].values())))
    assert output.stat().st_size > 0


def check_numbers(synopsis: Any, clustering: Any) -> None:
    """Check that counts are counts and centres lie within the bounds of the study."""
    for what, values in (("weights", synopsis.weights), ("sizes", clustering.sizes)):
        assert np.isfinite(values).all(), f"{what} are not finite"
        assert (values >= 0).all(), f"{what} are negative"
    assert math.isfinite(synopsis.total)
    # A study of counts alone has a total and no segments.
    in_all = float(clustering.sizes.sum()) if len(clustering.sizes) else synopsis.total
    assert math.isclose(in_all, synopsis.total, rel_tol=1e-6, abs_tol=1e-6)
    assert math.isfinite(clustering.loss)
    features = [feature for group in synopsis.features for feature in group]
    low = np.array([feature.low for feature in features])
    high = np.array([feature.high for feature in features])
    # A rounding error of the width or, where that is finer, of the bounds themselves.
    slack = 1e-6 * (high - low) + 4 * np.spacing(np.maximum(np.abs(low), np.abs(high)))
    for what, points in (("centres", clustering.centres), ("nodes", synopsis.nodes)):
        assert np.isfinite(points).all(), f"{what} are not finite"
        inside = (points >= low - slack) & (points <= high + slack)
        assert inside.all(), f"{what} lie outside the bounds"
