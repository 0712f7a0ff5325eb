"""Two parties with 40 columns each and names of 60 characters, over a folder, to the report.

Names and widths that no demo has: the parts behind the charge see them here first.
"""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from tests.e2e.world import World, keep_rehearsal

_PARTIES = ("bank", "shop")
_N_USERS = 2500


def _names(who: str) -> list[str]:
    """Forty names of sixty characters: with spaces, quotes, brackets, commas and other letters."""
    odd = ["[bold] ", ":x:-", 'say "what", ', "größe (€) ", "a, b; c | d "]
    return [f"{odd[n % 5]}{who} {n:02d} ".ljust(60, "m") for n in range(40)]


def test_a_wide_study_with_long_names_ends_with_a_report(tmp_path: Path) -> None:
    world = World(folder=tmp_path)
    rng = np.random.default_rng(3)
    shared = tmp_path / "shared"
    shared.mkdir()
    try:
        _agree(world, rng)
        box = ("--mailbox", str(shared), "--result", "result", "--home", "home")
        commands = [
            world.start(
                who, "party", "run", "study.toml", "--party", who, "--data", "t.parquet", *box
            )
            for who in _PARTIES
        ]
        commands.append(world.start("server", "server", "run", "study.toml", *box))
        for command in commands:
            done = command.done()
            assert done.code == 0, done.err
        shown = world.run("bank", "result", "show", "result")
        assert shown.code == 0, shown.err
        assert all(name.split()[0] in shown.out for name in _names("shop"))
        report = world.run("bank", "report", "result", "-o", "report.html")
        assert report.code == 0, report.err
        page = (tmp_path / "bank" / "report.html").read_text(encoding="utf-8")
        assert "größe (€) bank 03" in page
        labels = ("--party", "bank", "--data", "t.parquet", "-o", "labels.csv")
        labelled = world.run("bank", "result", "label", "result", *labels)
        assert labelled.code == 0, labelled.err
        assert pyarrow.csv.read_csv(tmp_path / "bank" / "labels.csv").num_rows == _N_USERS
    finally:
        world.end()


def _agree(world: World, rng: np.random.Generator) -> None:
    """Make tables and keys, and agree on the study."""
    group = rng.integers(3, size=_N_USERS)
    parties = []
    for who in (*_PARTIES, "server"):
        folder = world.folder / who
        folder.mkdir(mode=0o700)
        key = world.run(who, "keys", "new", "--home", "home")
        assert key.code == 0, key.err
        parties.append(key.out.strip())
    lines = [
        'name = "wide"',
        "n_clusters = 3",
        f"expected_users = {_N_USERS}",
        f'server_key = "{parties[-1]}"',
        "[budget]\nepsilon = 2.0\ndelta = 1e-6",
    ]
    for who, key in zip(_PARTIES, parties, strict=False):
        lines += ["[[parties]]", f'name = "{who}"', f'public_key = "{key}"']
        columns = {"id": [f"user {n}" for n in range(_N_USERS)]}
        for name in _names(who):
            lines += ["[[parties.columns]]", f"name = '{name}'", "low = 0", "high = 10"]
            columns[name] = np.clip(rng.normal(rng.uniform(2, 8, size=3)[group], 1), 0, 10)
        pq.write_table(pa.table(columns), world.folder / who / "t.parquet")
    for who in (*_PARTIES, "server"):
        (world.folder / who / "study.toml").write_text("\n".join(lines), encoding="utf-8")
    digits = world.run("bank", "study", "show", "study.toml", "--json")
    assert digits.code == 0, digits.err
    spoken = json.loads(digits.out)["digits"]
    for who in _PARTIES:
        done = world.run(
            who, "study", "approve", "study.toml", "--home", "home", "--digits", spoken
        )
        assert done.code == 0, done.err
        assert "its rehearsal passed on" in done.err
        keep_rehearsal(world.folder / "bank" / "home", world.folder / "shop" / "home")
