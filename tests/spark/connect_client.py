"""A party whose table is a DataFrame of Spark Connect; `test_connect.py` runs it as a process.

    python -m tests.spark.connect_client sc://127.0.0.1:PORT FOLDER

FOLDER has `bank.parquet` and `spool`. Prints one line for each thing that was tried. A process of
its own, because a process has either classic sessions or remote ones.
"""

import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from splitmeans.errors import DataError, ParameterError
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.protocol import run
from splitmeans.study import Budget, DecoyOptions, Study
from splitmeans.study.id_rules import AS_IS
from splitmeans.table.options import SourceOptions
from splitmeans.table.prepare import prepare_table
from splitmeans.table.spark import frozen, open_spark, start_session, users, walk
from splitmeans.table.walk import runs
from splitmeans.wire.codec import encode
from tests.spark.test_spark_table import N, rows_of, spec


def main(address: str, folder: Path) -> None:
    """Try everything."""
    frozen.BLOCK_ROWS, runs.BUCKET_RECORDS = 200, 800
    walk.AT_ONCE, users._LABEL_BYTES = 10_000, 1_000
    spark = start_session(address)
    bank = spark.read.parquet(str(folder / "bank.parquet"))
    party = spec("bank")
    say = print
    for spool, is_private, kind in (
        (folder / "spool", False, ParameterError),
        (folder / "nowhere", True, DataError),
    ):
        try:
            open_spark(party, bank, spool=str(spool), spool_is_private=is_private)
        except kind as problem:
            say("refused:", problem)
    try:
        repeated = bank.union(bank.limit(1))
        spool = str(folder / "spool")
        open_spark(
            party, repeated, spool=spool, spool_is_private=True, options=SourceOptions(rules=AS_IS)
        )
    except DataError as problem:
        say("refused:", str(problem)[:60])
    say("left after refusals:", _rows_in(folder / "spool"))
    rows = prepare_table(party, pq.read_table(folder / "bank.parquet"))
    shop = prepare_table(spec("shop"), rows_of(2))
    for name, options in (
        ("tags", {"ids": AS_IS}),
        ("collusion", {"decoy": DecoyOptions(collusion_epsilon=2.0)}),
    ):
        study = Study(
            name="test",
            parties=(party, spec("shop")),
            n_clusters=3,
            budget=Budget(epsilon=2.0, delta=1e-4),
            n_local_clusters=4,
            expected_users=N,
            **options,
        )
        with open_spark(
            party,
            bank,
            spool=str(folder / "spool"),
            spool_is_private=True,
            options=SourceOptions(rules=study.id_rules),
        ) as shared:
            say("rows frozen:", _rows_in(folder / "spool") > 0)
            same = _releases(study, [rows, shop]) == _releases(study, [shared, shop])
            say(f"{name}:", len(shared), "the same bits" if same else "OTHER BITS")
        say("left:", _rows_in(folder / "spool"))


def _releases(study, tables):
    rng = np.random.default_rng(5)
    done = run(study, tables, noise=InsecureSeededNoise(3), rng=rng).server
    return [encode(done.releases[name]) for name in study.party_names]


def _rows_in(spool: Path) -> int:
    return sum(pq.read_metadata(part).num_rows for part in spool.rglob("*.parquet"))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
