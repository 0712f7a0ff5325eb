"""What was measured, and what follows: growth with n, ratios to peers, and the claims we make."""

import dataclasses
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.speed.measure import growth_by_size
from benchmarks.speed.stage import Peer
from benchmarks.speed.start import FIRST_FIT, FIRST_FIT_OF_ALL, FIT, HELP, WHOLE_RUN
from benchmarks.speed.stream import Streamed

MEASURED, NOT_INSTALLED, SKIPPED, FAILED = "measured", "not installed", "skipped", "failed"

# The size and the limits of the claims.
CLAIM_USERS = 1_000_000
STREAM_ROWS = 50_000_000
STREAM_BYTES = 2 * 2**30
LARGE_STREAM_ROWS, LARGE_STREAM_SECONDS = 100_000_000, 45


@dataclass(frozen=True, kw_only=True)
class Row:
    """A stage or a peer at one n.

    Attributes:
        name: Of the stage or peer.
        group: Which part of a run it belongs to.
        peer: Whether it is a peer.
        n: Number of users.
        by_users: Whether the time depends on it.
        status: "measured", "not installed", "skipped" or "failed".
        reason: Why it was not measured.
        seconds: The shortest run, scaled up where only a part of the work was done.
        runs: All runs, not scaled.
        scaled: What part of the work was done; empty for all.
        cores: Processor time over wall time of the shortest run.
        processor_seconds: The least processor time of a run, not scaled.
        bytes_sent: What left the participant.
        peak_bytes: Largest resident memory of the measuring process, inputs included.
        working_bytes: By how much that exceeds the inputs.
        growth: Power of n with which the time grew since the next smaller n.
    """

    name: str
    group: str
    peer: bool
    n: int
    status: str
    by_users: bool = True
    reason: str = ""
    seconds: float | None = None
    runs: tuple[float, ...] = ()
    scaled: str = ""
    cores: float | None = None
    processor_seconds: float | None = None
    bytes_sent: int | None = None
    peak_bytes: int | None = None
    working_bytes: int | None = None
    growth: float | None = None

    @property
    def ns_per_user(self) -> float | None:
        """The shortest run over the number of users, in nanoseconds, where it depends on them."""
        return self.seconds / self.n * 1e9 if self.seconds and self.by_users else None


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """How many times as long a peer takes as a stage; `per_core` compares processor time."""

    peer: str
    stage: str
    n: int
    times: float
    per_core: float


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One claim: the measured value must be at most, or at least, the bar.

    `met` is None if it was not measured at the size that the claim names.
    """

    text: str
    unit: str
    measured: float | None
    bar: float
    at_most: bool

    @property
    def met(self) -> bool | None:
        """Whether the claim holds."""
        if self.measured is None:
            return None
        return self.measured <= self.bar if self.at_most else self.measured >= self.bar


def with_growth(rows: Iterable[Row]) -> list[Row]:
    """Return the rows with their growth exponents."""
    rows = list(rows)
    times: dict[str, list[tuple[int, float]]] = {}
    for row in rows:
        if row.seconds:
            times.setdefault(row.name, []).append((row.n, row.seconds))
    growth = {name: growth_by_size(measured) for name, measured in times.items()}
    return [dataclasses.replace(row, growth=growth.get(row.name, {}).get(row.n)) for row in rows]


def ratios(rows: Sequence[Row], peers: Iterable[Peer]) -> list[Ratio]:
    """Compare every measured peer with its stages at the same n."""
    wall = {(row.name, row.n): row.seconds for row in rows if row.seconds}
    processor = {(row.name, row.n): _processor_time(row) for row in rows if row.seconds}
    found = []
    for peer, n in itertools.product(peers, sorted({row.n for row in rows})):
        for stage in peer.against:
            theirs, ours = (peer.name, n), (stage, n)
            if theirs in wall and ours in wall:
                times = wall[theirs] / wall[ours]
                per_core = processor[theirs] / processor[ours]
                found.append(
                    Ratio(peer=peer.name, stage=stage, n=n, times=times, per_core=per_core)
                )
    return found


def _processor_time(row: Row) -> float:
    """Return the least processor time; that of the shortest run where a part was scaled up."""
    if row.processor_seconds and not row.scaled:
        return row.processor_seconds
    return (row.seconds or 0.0) * (row.cores or 1.0)


def claims(rows: Iterable[Row], streams: Sequence[Streamed] = ()) -> list[Claim]:
    """Evaluate the claims on what was measured."""
    rows = list(rows)
    seconds = {row.name: row.seconds for row in rows if row.n == CLAIM_USERS}
    processor = {row.name: _processor_time(row) for row in rows if row.n == CLAIM_USERS}

    def of(name: str, *, over: str | None = None, unit: float = 1.0) -> float | None:
        top, below = seconds.get(name), 1.0 if over is None else seconds.get(over)
        return None if top is None or not below else top / below * unit

    ns = 1e9 / CLAIM_USERS
    found: list[Claim] = []

    def claim(text: str, value: float | None, unit: str, bar: float, *, most: bool = True) -> None:
        found.append(Claim(text=text, unit=unit, measured=value, bar=bar, at_most=most))

    for gamma, stage, peer in (
        ("0.1", "encode sketch", "published sketch, gamma 0.1"),
        ("1", "encode sketch, gamma 1", "published sketch"),
    ):
        at = f"sketch, gamma {gamma}, k'=5, M=4096, 1M users"
        claim(f"{at}: encoding", of(stage, unit=ns), "ns a user", 400)
        claim(f"{at}: published way over ours", of(peer, over=stage), "times", 300, most=False)
    for method in ("decoy", "decoy, tags"):
        claim(f"{method}, 1M users: encoding", of(f"encode {method}", unit=ns), "ns a user", 400)
        value = of(f"combine {method}", over="DuckDB join of ids")
        claim(f"{method}, 1M users: server over DuckDB join of ids", value, "times", 1)
    for stage in ("run decoy", "check and run decoy"):
        value = of(stage, over="scikit-learn KMeans, n_init=10")
        claim(
            f"{stage}, 1M users, S=2, 16 columns: over pooled KMeans(n_init=10)", value, "times", 1
        )
    for n_init, bar in ((1, 1.8), (10, 0.3)):
        ours, theirs = processor.get(FIT), processor.get(f"scikit-learn KMeans, n_init={n_init}")
        value = ours / theirs if ours and theirs else None
        text = f"{FIT}, 1M users, S=2, 16 columns: processor time over pooled KMeans"
        claim(f"{text}(n_init={n_init})", value, "times", bar)
    # These do not depend on the number of users that the rest is measured at. Processor time is
    # what a busy machine changes least; a run of several processes is waited for.
    used = {row.name: _processor_time(row) for row in rows if row.seconds}
    for name, bar in ((HELP, 0.4), (FIRST_FIT, 1.1), (FIRST_FIT_OF_ALL, 4.0)):
        claim(f"{name}: processor time", used.get(name), "s", bar)
    waited = {row.name: row.seconds for row in rows if row.seconds}
    claim(f"{WHOLE_RUN}: wall time", waited.get(WHOLE_RUN), "s", 4.0)
    for method in ("sketch", "decoy"):
        value = of(f"combine {method}, S=4, k'=8")
        claim(f"server, {method}, S=4, k'=8, 1M users: bytes to weights", value, "s", 0.5)
    by_rows = {stream.rows: stream for stream in streams}
    largest = by_rows.get(STREAM_ROWS)
    peak = None if largest is None else largest.peak_bytes / 2**20
    large = by_rows.get(LARGE_STREAM_ROWS)
    claim(
        "100M rows x 8 columns of parquet: whole release",
        None if large is None else large.seconds,
        "s",
        LARGE_STREAM_SECONDS,
    )
    claim("50M rows x 8 columns of parquet: peak memory", peak, "MiB", STREAM_BYTES / 2**20)
    growth = growth_by_size([(stream.rows, stream.seconds) for stream in streams])
    claim("the same: time grows as n to the power of", growth.get(STREAM_ROWS), "", 1.05)
    return found


def to_mapping(
    rows: Sequence[Row], peers: Iterable[Peer], streams: Sequence[Streamed] = ()
) -> dict[str, Any]:
    """Return everything as plain values for JSON."""
    peers = list(peers)
    return {
        "peers": {peer.name: peer.does for peer in peers},
        "rows": [dataclasses.asdict(row) | {"ns_per_user": row.ns_per_user} for row in rows],
        "ratios": [dataclasses.asdict(ratio) for ratio in ratios(rows, peers)],
        "streams": [dataclasses.asdict(stream) for stream in streams],
        "claims": [dataclasses.asdict(item) | {"met": item.met} for item in claims(rows, streams)],
    }
