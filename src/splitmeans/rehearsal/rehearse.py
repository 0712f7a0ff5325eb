"""Rehearse a study: the whole run, by everyone, in this process, on made-up tables of its shape.

What can fail after a release fails here first, where nothing is charged. Nothing is simulated but
the tables: the participants are those of a real run (`run.party`, `run.server`) with homes, keys,
ledgers and a mailbox of their own in a temporary folder. Each goes on until it would have to wait
and is then started again from its disk, so taking a run up again is rehearsed as well.

A rehearsal says nothing about the people in anybody's table: no such table is opened.
"""

import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from splitmeans.errors import RehearsalError, SplitmeansError, WaitingError
from splitmeans.mailbox.open import open_mailbox
from splitmeans.party.label_file import write_labels
from splitmeans.plan.message_sizes import message_sizes
from splitmeans.plan.plan import Plan
from splitmeans.plan.settle import make_plan
from splitmeans.privacy.calibrate import MAX_EPSILON
from splitmeans.rehearsal.tables import made_up_tables
from splitmeans.report.build import build_report
from splitmeans.report.html import render
from splitmeans.result.result import Result
from splitmeans.run.journal import Journal
from splitmeans.run.notes import Note
from splitmeans.run.party import run_party
from splitmeans.run.party_run import PartyRun
from splitmeans.run.server import ServerRun, run_server
from splitmeans.study import Budget, Study
from splitmeans.table.options import SourceOptions
from splitmeans.table.sources.open import open_source
from splitmeans.wire.identity import Identity
from splitmeans.wire.slot import SERVER

_RUN = "rehearsal"
_TABLE = "table.parquet"
# A party makes progress in every round: contributions, confirmations, stages, release, result.
_MOST_ROUNDS = 40
# Decoys beyond this many bytes make a rehearsal take minutes; it then takes a larger epsilon, with
# fewer of them. Whether the true ones fit is a matter of arithmetic (`message_sizes`).
_LIGHT_BYTES = 6 << 20

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Rehearsed:
    """A rehearsal that passed."""

    users: int
    seconds: float


def rehearse(study: Study, *, say: Say = lambda text: None) -> Rehearsed:
    """Run the whole study on made-up tables; return how it went.

    The study may have keys or not: the rehearsal makes its own.

    Raises:
        ParameterError: The study itself cannot be run between organisations.
        RehearsalError: Something failed that would have failed in the run.
    """
    start = time.monotonic()
    plan = make_plan(study)
    tables = made_up_tables(study, rng=np.random.default_rng())
    users = max(table.num_rows for table in tables.values())
    text = f"rehearsing study {study.name!r} with {users:,} made-up users"
    say(Note(text, event="rehearsing"))
    try:
        with tempfile.TemporaryDirectory(prefix="splitmeans-rehearsal-", dir=_fast_disk()) as name:
            cast = _Cast.gather(_lighter(study, plan), Path(name))
            for party, table in tables.items():
                pq.write_table(table, cast.table(party))
            for run in cast.runs:
                cast.play(run)
                cast.look_at_results()
    except Exception as problem:
        # Whatever it is, it would have come in the run, after a charge.
        what = str(problem) if isinstance(problem, SplitmeansError) else repr(problem)
        raise RehearsalError(
            f"the rehearsal of study {study.name!r} failed: {what}. Nothing was sent and nothing "
            "was charged; a run of this study would fail in the same way, maybe after a charge. If "
            "the text does not tell what to change in the study, this is a defect of splitmeans"
        ) from problem
    return Rehearsed(users=users, seconds=time.monotonic() - start)


@dataclass(frozen=True, kw_only=True)
class _Cast:
    """Everyone who takes part in a rehearsal, in one folder."""

    study: Study
    identities: Mapping[str, Identity]
    folder: Path

    @classmethod
    def gather(cls, study: Study, folder: Path) -> "_Cast":
        """Give everyone keys and a folder; the parties approve the study with those keys."""
        identities = {name: Identity.new() for name in (*study.party_names, SERVER)}
        keys = {name: identity.public.to_text() for name, identity in identities.items()}
        parties = tuple(replace(party, public_key=keys[party.name]) for party in study.parties)
        # Ids that fit a pattern cannot be made up; that the real ones do is checked on the table.
        ids = None if study.ids is None else replace(study.ids, pattern=None)
        stand_in = replace(study, parties=parties, server_key=keys[SERVER], ids=ids)
        cast = cls(study=stand_in, identities=identities, folder=folder)
        (folder / "mailbox").mkdir()
        for name in identities:
            cast.place(name).mkdir(mode=0o700)
            with Journal.open(cast.home(name)) as journal:
                journal.approve(stand_in.hash, stand_in.to_toml())
        return cast

    def place(self, name: str) -> Path:
        """A participant's folder: by number, because names may hold what no path can."""
        return self.folder / str(list(self.identities).index(name))

    def home(self, name: str) -> Path:
        return self.place(name) / "home"

    def table(self, party: str) -> Path:
        return self.place(party) / _TABLE

    @property
    def runs(self) -> tuple[str, ...]:
        """The runs to play: of a series the first, and the second, which begins from its result."""
        return (_RUN,) if self.study.renewal is None else ("1", "2")

    def play(self, run: str) -> None:
        """Start everyone in turn until all have the result."""
        waiting = dict.fromkeys(self.identities)
        for _ in range(_MOST_ROUNDS):
            for name in list(waiting):
                try:
                    self._start(name, run)
                    del waiting[name]
                except WaitingError:
                    continue
            if not waiting:
                return
        raise RehearsalError(f"{', '.join(waiting)} went on waiting for the others")

    def look_at_results(self) -> None:
        """Read every result back, label every party's rows, and make the report."""
        read = {name: Result.read(self._result(name)) for name in self.identities}
        if len({result.facts["result_hash"] for result in read.values()}) > 1:
            raise RehearsalError("the participants got different results")
        # With few made-up users the noise may leave no segment, and then there is nothing to label.
        labelled = self.study.party_names if len(read[SERVER].published_sizes) else ()
        for party in labelled:
            write_labels(
                read[party],
                self.table(party),
                self.place(party) / "labels.parquet",
                party=party,
                segments=read[party].published,
                progress=lambda *args, **keywords: None,
            )
        render(build_report(read[SERVER], ks=(self.study.n_clusters,)))

    def _start(self, name: str, run: str) -> None:
        """Let one participant go on until it has the result, or would have to wait."""
        mailbox = open_mailbox(
            str(self.folder / "mailbox"), participant=name, signer=self.identities[name]
        )
        shared: dict[str, Any] = {
            "study": self.study,
            "run": run,
            "identity": self.identities[name],
            "mailbox": mailbox,
            "result_folder": self._result(name),
            "say": lambda text: None,
        }
        try:
            if name == SERVER:
                run_server(ServerRun(**shared), self.home(name), timeout=0.0)
                return
            spec = self.study.party(name)
            options = SourceOptions(rules=self.study.id_rules)
            open_table = partial(open_source, spec, self.table(name), options=options)
            what = PartyRun(
                **shared, party=name, source=_RUN, open_table=open_table, is_made_up=True
            )
            run_party(what, self.home(name), timeout=0.0)
        finally:
            mailbox.close()

    def _result(self, name: str) -> Path:
        return self.place(name) / "result"


def _lighter(study: Study, plan: Plan) -> Study:
    """Return the study, with a larger epsilon if its decoys would take minutes; k' stays."""
    lighter = study
    while sum(message_sizes(plan, users=0).unpadded.values()) > _LIGHT_BYTES:
        epsilon = min(2 * lighter.budget.epsilon, MAX_EPSILON)
        if epsilon <= lighter.budget.epsilon:
            break
        lighter = replace(
            lighter,
            budget=Budget(epsilon=epsilon, delta=study.budget.delta),
            n_local_clusters=max(plan.n_labels),
        )
        plan = make_plan(lighter)
    return lighter


def _fast_disk() -> str | None:
    """Return a folder in memory where there is one: a run writes everything through to its disk."""
    memory = Path("/dev/shm")
    return str(memory) if memory.is_dir() else None
