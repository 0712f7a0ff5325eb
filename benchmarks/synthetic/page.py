"""The table of docs/synthetic.md, and in how many of its lines the aim is met."""

from collections.abc import Sequence

import numpy as np

from benchmarks.synthetic.contest import DETAIL, INDEPENDENT, OURS, POOLED, Row, peer_name

_MEASURES = ("one_way", "within", "across", "correlation", "auc")
_MST = peer_name("mst")
_SHOWN = (POOLED, INDEPENDENT, OURS, DETAIL, _MST)
# The aim: of MST's error across parties, and of its time.
MOST_ACROSS, MOST_TIME = 1.1, 0.1


def page_lines(rows: Sequence[Row]) -> list[str]:
    """Return the table as Markdown, and a sentence on the aim; means over seeds."""
    there = [name for name in _SHOWN if any(row.contender == name for row in rows)]
    lines = [
        f"| table, parties, epsilon | {' | '.join(there)} | seconds |",
        "|---" * (len(there) + 2) + "|",
    ]
    met = []
    for key in dict.fromkeys(_key(row) for row in rows):
        part = [row for row in rows if _key(row) == key]
        cells = {name: _means(part, name) for name in there}
        seconds = {name: _seconds(part, name) for name in (DETAIL, _MST)}
        data, parties, epsilon = key
        texts = [_text(cells[name]) for name in there]
        taken = " / ".join("-" if one is None else f"{one:.1f}" for one in seconds.values())
        lines.append(f"| {data}, {parties}, {epsilon:g} | {' | '.join(texts)} | {taken} |")
        ours, peer = cells.get(DETAIL), cells.get(_MST)
        if ours is not None and peer is not None:
            met.append(_met(ours, peer, seconds[DETAIL], seconds[_MST]))
    if met:
        across, auc, time = (sum(one[place] for one in met) for place in range(3))
        both = sum(one[0] and one[1] for one in met)
        lines += [
            "",
            f"Of {len(met)} lines: error across parties at most {MOST_ACROSS} times MST's in "
            f"{across}, classifier at least as good in {auc}, both in {both}; "
            f"a tenth of its time in {time}.",
        ]
    return lines


def _key(row: Row) -> tuple[str, int, float]:
    return (row.case.data, row.case.n_parties, row.case.epsilon)


def _means(rows: Sequence[Row], contender: str) -> dict[str, float] | None:
    own = [row.measures for row in rows if row.contender == contender and row.measures]
    if not own:
        return None
    return {name: float(np.mean([one[name] for one in own])) for name in _MEASURES}


def _seconds(rows: Sequence[Row], contender: str) -> float | None:
    own = [row.processor_seconds for row in rows if row.contender == contender]
    known = [one for one in own if one is not None]
    return float(np.mean(known)) if known else None


def _text(measures: dict[str, float] | None) -> str:
    if measures is None:
        return "given up"
    return "/".join(f"{measures[name]:.3f}".removeprefix("0") for name in _MEASURES)


def _met(
    ours: dict[str, float], peer: dict[str, float], seconds: float | None, theirs: float | None
) -> tuple[bool, bool, bool]:
    """Say whether error, classifier and time are within the aim, as they are printed."""
    return (
        round(ours["across"], 3) <= MOST_ACROSS * round(peer["across"], 3),
        round(ours["auc"], 3) >= round(peer["auc"], 3),
        seconds is not None and theirs is not None and seconds <= MOST_TIME * theirs,
    )
