"""The page `reproduction.md`: for every figure what the paper shows, what we measured, and why."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.data_files import DataFile
from benchmarks.paper import published
from benchmarks.paper.claims import OURS, Finding, findings
from benchmarks.paper.figure import Figure
from benchmarks.paper.figures import DATA, DATA_NAMES
from benchmarks.paper.judges import YES
from benchmarks.paper.points import Points
from benchmarks.paper.tables import OWN_TABLES, markdown
from splitmeans._version import __version__

# Where pictures and tables are, seen from the page.
FOLDER = "reproduction"

_INTRO = """\
# The paper's figures and tables, run again

Li, Wang and Li, "Differentially Private Vertical Federated Clustering" (VLDB 2023). The source of
the paper that we have holds its text and tables but not the values in its plots, so a figure is
compared with what the text says about it, and a table with its numbers. Lower losses are better;
all columns are scaled to [-1, 1]. Points are means over seeds, bars one standard error. The seed
decides drawn data, random splits of columns and all noise.

Blue, light blue, purple and red are the paper's methods, green and orange ours, black and grey
pooled data or no privacy. `decoy` and `sketch` have the same total epsilon and delta as the others,
composed exactly; the paper's methods divide and add up their budget as published. DPFMPS needs a
caution: its published privacy bound does not hold when parties share hash keys
([why](concepts/published-argument.md)).

This page is written by `python -m benchmarks paper`; edit `benchmarks/paper`, not the page.
"""


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """What the page says about the run itself.

    Attributes:
        seeds: Seeds of each point.
        quick: Whether the grid was the small one.
        cells: Cells behind the page.
        wall_seconds: How long the runs took together, as far as their notes tell.
        processor_seconds: What all cells took; on an idle machine, `jobs` times the time.
        noted_cells: Cells of those runs; fewer than all if a run was killed before its note.
        jobs: Processes of the last run.
        processor: The machine's.
        files: The files of real data.
        left_out: What could not be run, and why.
    """

    seeds: int
    quick: bool
    cells: int
    wall_seconds: float
    processor_seconds: float
    noted_cells: int
    jobs: int
    processor: str
    files: tuple[DataFile, ...] = ()
    left_out: tuple[str, ...] = ()


def render(all_points: Sequence[Points], facts: RunFacts) -> str:
    """Return the page."""
    judged = {points.figure.name: findings(points) for points in all_points}
    parts = [_INTRO, _about(facts), _summary(all_points, judged)]
    for points in all_points:
        if points.figure.name == DATA:
            parts.append(_data(points.figure, facts))
        elif points.panels:
            parts.append(_section(points, judged[points.figure.name]))
    return "\n".join(parts)


def _about(facts: RunFacts) -> str:
    seeds = f"{facts.seeds} seed{'s' if facts.seeds != 1 else ''}"
    size = f"the quick grid with {seeds}" if facts.quick else f"the full grid with {seeds}"
    at_least = "at least " if facts.noted_cells < facts.cells else ""
    lines = [
        "## This run",
        "",
        f"splitmeans {__version__}, {size}: {facts.cells:,} runs in {at_least}"
        f"{facts.wall_seconds / 60:.0f} minutes on {facts.jobs} processes of one thread "
        f"({facts.processor}), of which {facts.processor_seconds / 60:.0f} minutes of processor "
        "time in the runs themselves. To run it again:",
        "",
        "<!-- not run: takes minutes -->",
        "```bash",
        f"python -m benchmarks paper --all --data-dir DIR --seeds {facts.seeds}"
        + (" --quick" if facts.quick else ""),
        "```",
        "",
        "Finished runs are kept in `cells.jsonl` of the output folder, and a run that was stopped "
        "goes on. [Data files](data.md) are not part of this project.",
        "",
    ]
    if facts.left_out:
        lines += ["Not run: " + "; ".join(facts.left_out) + ".", ""]
    return "\n".join(lines)


def _summary(all_points: Sequence[Points], judged: Mapping[str, Sequence[Finding]]) -> str:
    rows = [
        [f"[{points.figure.title}](#{_anchor(points.figure.title)})", finding.claim, finding.agrees]
        for points in all_points
        for finding in judged[points.figure.name]
        if finding.agrees != OURS
    ]
    agreeing = sum(row[2] == YES for row in rows)
    heading = f"## Findings\n\n{agreeing} of {len(rows)} statements of the paper came out.\n\n"
    return heading + markdown(["figure", "what the paper says", "came out"], rows) + "\n"


def _section(points: Points, judged: Sequence[Finding]) -> str:
    figure = points.figure
    parts = [f"## {figure.title}", f"**Paper** ({figure.item}). {figure.paper}"]
    parts.append(f"**Here.** {figure.settings}")
    if figure.picture:
        parts.append(f"![{figure.title}]({FOLDER}/{figure.name}.svg)")
    if figure.name in OWN_TABLES:
        parts.append(OWN_TABLES[figure.name](points))
    rows = [[finding.claim, finding.measured, finding.agrees] for finding in judged]
    if rows:
        parts.append(markdown(["statement", "measured", "came out"], rows))
    reasons: dict[str, list[str]] = {}
    for finding in judged:
        if finding.why:
            reasons.setdefault(finding.why, []).append(finding.claim)
    if reasons:
        lines = [f"- *{' '.join(claims)}* {why}" for why, claims in reasons.items()]
        parts.append("Where it differs, and why:\n\n" + "\n".join(lines))
    parts.append(
        f"All numbers: [table]({FOLDER}/{figure.name}.md), [JSON]({FOLDER}/{figure.name}.json)."
    )
    return "\n\n".join(parts) + "\n"


def _data(figure: Figure, facts: RunFacts) -> str:
    files = {file.data: file for file in facts.files}
    rows = []
    for name, shown in DATA_NAMES.items():
        records, columns = published.DATA[name]
        file = files.get(name)
        if name == "mixed-gaussian":
            ours, difference = "drawn, 20,000 rows", "none; drawn anew for each seed"
        elif file is None:
            ours, difference = "-", "not run"
        else:
            ours = f"`{file.name}`, {file.rows_read:,} rows, {file.rows_used:,} after preparation"
            difference = "; ".join(_differences(file, records)) or "none"
        rows.append([shown, f"{records:,} rows, {columns} columns", ours, difference])
    parts = [
        f"## {figure.title}",
        f"**Paper** ({figure.item}). {figure.paper}",
        markdown(["data", "paper", "here", "difference"], rows),
        "[data.md](data.md) says where the files come from and what is done to them. The paper "
        "does not say which 100,000 trips it took, how it treats trips without a position and "
        "missing values, or how far its mixed Gaussian clusters reach (deviation 0.1 here, as in "
        "the authors' code).",
    ]
    return "\n\n".join(parts) + "\n"


def _differences(file: DataFile, records: int) -> list[str]:
    found = []
    if file.rows_read != records:
        found.append(f"{file.rows_read:,} rows where the paper has {records:,}")
    if file.rows_used != file.rows_read:
        found.append(
            f"{file.rows_read - file.rows_used:,} trips outside the city or over two hours left out"
        )
    if file.period is not None:
        found.append(
            f"pickups from {file.period[0]} to {file.period[1]} (the competition's file: January "
            "to June 2016)"
        )
    return found


def _anchor(title: str) -> str:
    kept = "".join(letter for letter in title.lower() if letter.isalnum() or letter in " -")
    return kept.replace(" ", "-")
