"""A run between two parties and a server, as it is on everyone's disk afterwards."""

from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from splitmeans.errors import WaitingError
from splitmeans.evidence.make import make_bundle
from splitmeans.mailbox.open import open_mailbox
from splitmeans.result.result import Result
from splitmeans.run.journal import Journal
from splitmeans.run.party import PartyRun, run_party
from splitmeans.run.server import ServerRun, run_server
from splitmeans.study import Study
from splitmeans.wire.slot import SERVER
from tests.scene import KEYS, keyed_study, make_table

EVERYONE = ("bank", "shop", SERVER)
IDS = [f"person-{number}" for number in range(7_000, 7_300)]


@dataclass(frozen=True)
class Ran:
    """What a run left behind."""

    study: Study
    folder: Path

    def home(self, name: str) -> Path:
        return self.folder / name

    def result(self, name: str, *, place: str = "result") -> Result:
        return Result.read(self.folder / name / place)

    def bundle(self, name: str = "bank", *, place: str = "result") -> bytes:
        return make_bundle(self.result(name, place=place), self.home(name), KEYS[name])


def play(
    study: Study,
    folder: Path,
    *,
    names: tuple[str, ...] = EVERYONE,
    rounds: int = 20,
    run: str = "q1",
) -> Ran:
    """Start participants in turn until they have the result, or `rounds` are over."""
    (folder / "mailbox").mkdir(exist_ok=True)
    waiting = list(names)
    for _ in range(rounds):
        for name in list(waiting):
            home = folder / name
            with Journal.open(home) as journal:
                journal.approve(study.hash, study.to_toml())
            shared = {
                "study": study,
                "run": run,
                "identity": KEYS[name],
                "mailbox": open_mailbox(str(folder / "mailbox")),
                "result_folder": home / ("result" if run == "q1" else f"result-{run}"),
                "say": lambda text: None,
            }
            try:
                if name == SERVER:
                    run_server(ServerRun(**shared), home, timeout=0.001)
                else:
                    table = partial(nullcontext, make_table(study, name, ids=IDS))
                    what = PartyRun(
                        **shared, party=name, source="customers", open_table=table, is_made_up=True
                    )
                    run_party(what, home, timeout=0.001)
                waiting.remove(name)
            except WaitingError:
                continue
    return Ran(study, folder)


@pytest.fixture(scope="session")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    study = keyed_study(n_local_clusters="auto")
    return play(study, tmp_path_factory.mktemp("ran"))


@pytest.fixture(scope="session")
def bundle(ran: Ran) -> bytes:
    return ran.bundle()
