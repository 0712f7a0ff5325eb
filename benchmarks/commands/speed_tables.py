"""The tables of `speed`: stages, peers, ratios, streams, Spark and claims."""

from collections.abc import Sequence

from benchmarks.commands.output import show
from benchmarks.speed.join import Joined
from benchmarks.speed.results import Claim, Ratio, Row
from benchmarks.speed.spark import Derived, Sparked
from benchmarks.speed.stream import Streamed


def print_rows(title: str, rows: Sequence[Row]) -> None:
    """Print stages or peers, a name's sizes below each other."""
    if not rows:
        return
    names = list(dict.fromkeys(row.name for row in rows))
    ordered = sorted(rows, key=lambda row: (names.index(row.name), row.n))
    headings = (
        *("what", "users", "ms", "processor ms", "ns a user"),
        *("sent", "memory", "cores", "growth"),
    )
    show(title, headings, map(_cells, ordered), left=("what",))


def _cells(row: Row) -> tuple[str, ...]:
    if row.seconds is None:
        return row.name, f"{row.n:,}", f"{row.status}: {row.reason}"
    return (
        f"{row.name} ({row.scaled})" if row.scaled else row.name,
        f"{row.n:,}",
        f"{row.seconds * 1e3:,.1f}",
        "-" if row.processor_seconds is None else f"{row.processor_seconds * 1e3:,.1f}",
        "-" if row.ns_per_user is None else f"{row.ns_per_user:,.0f}",
        _size(row.bytes_sent),
        _size(row.working_bytes),
        f"{row.cores:.1f}",
        "-" if row.growth is None else f"{row.growth:.2f}",
    )


def print_ratios(ratios: Sequence[Ratio]) -> None:
    """Print how peers compare at the largest number of users."""
    if not ratios:
        return
    largest = max(ratio.n for ratio in ratios)
    show(
        f"Peers over ours, {largest:,} users",
        ("peer", "stage", "times as long", "processor time"),
        [
            (r.peer, r.stage, f"{r.times:,.2f}", f"{r.per_core:,.2f}")
            for r in ratios
            if r.n == largest
        ],
        left=("peer", "stage"),
    )


def print_streams(streams: Sequence[Streamed]) -> None:
    """Print what the release of files took."""
    rows = [
        (
            f"{stream.rows:,}",
            str(stream.workers),
            f"{stream.seconds:,.1f}",
            f"{stream.rows / stream.seconds:,.0f}",
            _size(stream.bytes_sent),
            _size(stream.peak_bytes),
        )
        for stream in streams
    ]
    if rows:
        headings = ("rows", "workers", "s", "rows a second", "sent", "peak")
        show("Parquet by row groups", headings, rows)


def print_joins(joins: Sequence[Joined]) -> None:
    """Print what the server's join of tags on disk took."""
    rows = [
        (
            f"{join.tags:,}",
            f"{join.seconds:,.1f}",
            f"{join.processor_seconds:,.1f}",
            _size(join.own_bytes),
            _size(join.disk_bytes),
        )
        for join in joins
    ]
    if rows:
        headings = ("tags a party", "s", "processor s", "memory of its own", "on disk")
        show("The server's join of two parties", headings, rows)


def print_spark(found: Sequence[Sparked], derived: Sequence[Derived]) -> None:
    """Print what Spark took here, and what follows for clusters."""
    if not found:
        return
    stages = list(dict.fromkeys(stage for one in found for stage in one.stages))
    headings = ("rows", "cores", "start", "party", "rows a second", "compare users", "peak")
    rows = [
        (
            f"{one.rows:,}",
            str(one.cores),
            f"{one.start_seconds:.1f}",
            f"{one.seconds:.1f}",
            f"{one.rows / one.seconds:,.0f}",
            f"{one.confirm_seconds:.1f}",
            f"{one.peak_bytes / 1e9:.1f} GB",
            *(f"{one.stages.get(stage, 0.0):.1f}" for stage in stages),
        )
        for one in found
    ]
    show("Spark on this machine, seconds", (*headings, *stages), rows)
    by_rows: dict[int, dict[int, str]] = {}
    for one in derived:
        text = f"{one.seconds:,.0f} ({one.driver_seconds:,.0f})"
        by_rows.setdefault(one.rows, {})[one.workers] = text
    if by_rows:
        workers = sorted({one.workers for one in derived})
        show(
            "Spark on a cluster, seconds: derived from the above, not measured",
            ("rows", *(f"{count:,} workers (driver alone)" for count in workers)),
            [(f"{n:,}", *(times[w] for w in workers)) for n, times in sorted(by_rows.items())],
        )


def print_claims(claims: Sequence[Claim]) -> None:
    """Print our claims and whether they hold."""
    rows = []
    for claim in claims:
        sign = "at most" if claim.at_most else "at least"
        measured = "-" if claim.measured is None else f"{claim.measured:,.3g} {claim.unit}"
        verdict = {True: "yes", False: "NO", None: "not measured"}[claim.met]
        rows.append((claim.text, measured, f"{sign} {claim.bar:g} {claim.unit}", verdict))
    show("Claims", ("claim", "measured", "bar", "met"), rows, left=("claim", "met"))


def _size(size: int | None) -> str:
    if size is None:
        return "-"
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= scale:
            return f"{size / scale:.1f} {unit}"
    return f"{size} B"
