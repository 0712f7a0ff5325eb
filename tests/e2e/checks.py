"""What must hold when a run between processes has ended well."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from tests.e2e.world import (
    DATA,
    EVERYONE,
    PARTIES,
    SERVER,
    TRUTH,
    Done,
    World,
    columns_of,
    read_data,
)

# In units of the columns, which go from 0 to 100. The noise is real, so it differs from run to run:
# over 200 runs the largest error of any centre was 0.65 in the mean and 2.7 at most.
TOLERANCE = 10.0
_SAMPLED_ROWS = 40


def check_ends(world: World, ends: dict[str, Done]) -> dict[str, Any]:
    """Check that all ended with the same result, near the truth; return it."""
    results = {}
    for who in EVERYONE:
        assert ends[who].code == 0, f"{who}: {ends[who].err}"
        folder = world.folder / who / ends[who].out.strip()
        assert world.home(who) in folder.parents
        assert {path.name for path in folder.iterdir()} >= {
            "centres.csv",
            "result.json",
            "statement.txt",
            "study.toml",
            "synopsis.parquet",
            "transcript.json",
        }
        results[who] = json.loads((folder / "result.json").read_text())
        assert results[who]["participant"] == who
    assert len({result["result_hash"] for result in results.values()}) == 1
    check_centres(results[SERVER])
    return results[SERVER]


def check_centres(result: dict[str, Any]) -> None:
    names = [f"{who}: {name}" for who in PARTIES for name in columns_of(who)]
    assert result["columns"] == names
    found = np.array(result["centres"])
    distances = np.abs(found[:, None, :] - TRUTH[None, :, :]).max(axis=2)
    assert sorted(distances.argmin(axis=1)) == list(range(len(TRUTH)))
    assert distances.min(axis=1).max() < TOLERANCE


def check_charges(world: World, *, runs: int = 1) -> None:
    """Each party was charged once for each run, with its first release.

    The first party also releases the number of users, from which k' follows.
    """
    for who in PARTIES:
        ledger = world.ledger(who)
        releases = [("charge", "PartyRelease")]
        if who == PARTIES[0]:
            releases = [("charge", "StageRelease_1"), ("cover", "PartyRelease")]
        charged = [(entry["kind"], entry["what"]) for entry in ledger["entries"]]
        # Runs at the same time take turns, so the order is that of one run only.
        assert charged == releases if runs == 1 else sorted(charged) == sorted(releases * runs)
        spent = ledger["sources"][DATA[who]]
        assert (spent["epsilon"], spent["delta"]) == (2.0 * runs, 1e-5 * runs)


def check_no_rows(world: World, *others: Path) -> None:
    """No file but a party's own data has an id, or a value of anyone's row, in any form."""
    needles = set()
    for who in PARTIES:
        table = read_data(world.folder, who).slice(0, _SAMPLED_ROWS)
        needles |= {text.encode() for text in table["id"].to_pylist()}
        for name in columns_of(who):
            values = table[name].to_numpy()
            # Clipped values are the bounds, which everyone may know.
            inner = values[(values > 0) & (values < 100)]
            needles |= {repr(value).encode() for value in inner.tolist()}
            needles |= {value.tobytes() for value in inner}
            needles |= {value.byteswap().tobytes() for value in inner}
    own = {world.folder / who / DATA[who] for who in PARTIES}
    files = [path for place in (world.folder, *others) for path in place.rglob("*")]
    looked_at = [path for path in files if path.is_file() and path not in own]
    assert len(looked_at) > 40
    for path in looked_at:
        data = path.read_bytes()
        assert not any(needle in data for needle in needles), f"{path} has something of a row"
