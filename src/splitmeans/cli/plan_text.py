"""What `splitmeans plan` prints: what the result is worth first, details of the noise last."""

import math
import textwrap
from collections.abc import Sequence
from typing import Literal

from rich.table import Table

from splitmeans.cli.console import new_table, out, print_table
from splitmeans.figures import number
from splitmeans.forecasting.bounds import Price
from splitmeans.forecasting.column_shares import column_shares
from splitmeans.forecasting.forecast import EpsilonNeeded, Forecast, Point
from splitmeans.forecasting.loss_model import MAX_RATIO, LossForecast
from splitmeans.forecasting.noise import shown_party
from splitmeans.forecasting.warnings import count_deviation
from splitmeans.intervals.sizes import WIDTH_95
from splitmeans.plan import costs
from splitmeans.plan.learned import learned_lines
from splitmeans.plan.message_sizes import shown_bytes
from splitmeans.plan.plan import Plan
from splitmeans.plan.settle import make_plan
from splitmeans.privacy.calibrate import MAX_EPSILON
from splitmeans.study import EQUAL, Study

# Figures begin here; a line that is too long for a terminal goes on below them.
_INDENT = " " * 14
# So many columns are named, and none if all count about the same.
_COLUMNS = 8
_ABOUT_THE_SAME = 1.05

# What is said behind the loss ratio, by what is known of the data.
_DATA = {
    None: "depending on the data",
    "clear": "for segments with gaps between them",
    "smooth": "for segments without gaps between them",
}
_WITHOUT_PRIVACY = "k-means on the pooled tables would reach without privacy"


def print_plan(
    found: Forecast, epsilons: tuple[float, ...], *, needed: EpsilonNeeded | None
) -> None:
    """Print a forecast for people, with the epsilon that was asked for if there is one."""
    study = found.study
    if study.counts_only:
        _print_counts_plan(found, epsilons)
        return
    budget = study.budget
    _line(
        f"study {study.name!r}: {len(study.parties)} parties, {found.users:,} users, "
        f"{study.n_clusters} segments, {study.membership}, epsilon {budget.epsilon:g}, "
        f"delta {budget.delta:g}, k' = {_width(found)}",
        indent="    ",
    )
    for warning in found.warnings:
        _line(f"WARNING: {warning}", indent="    ")
    out.print()
    _print_loss(found)
    _print_segment_error(found)
    _print_bounds(found)
    for line in learned_lines(make_plan(study)):
        _figure("learned", line)
    out.print()
    _print_sweep(found, epsilons)
    if needed is not None:
        out.print()
        _line(f"for a loss ratio of {needed.ratio:g}: {_answer(needed)}", indent="    ")
    _print_columns(found.study)
    out.print()
    _print_sizes(found)
    for note in found.notes[len(found.loss_notes) :]:
        _figure("note", note)
    out.print()
    _print_noise(found)


def _print_counts_plan(found: Forecast, epsilons: tuple[float, ...]) -> None:
    """Print the forecast of a study of counts alone: there are no segments to speak of."""
    study = found.study
    n_parties, budget = len(study.parties), study.budget
    _line(
        f"study {study.name!r}: counts alone, {n_parties} parties, {found.users:,} users, epsilon "
        f"{budget.epsilon:g}, delta {budget.delta:g}",
        indent="    ",
    )
    for warning in found.warnings:
        _line(f"WARNING: {warning}", indent="    ")
    out.print()
    half = WIDTH_95 * count_deviation(found.plan)
    counts = 2**n_parties - 1
    _figure("counts", f"{counts:,}: all ways to be at one or more of {n_parties} parties")
    _figure("noise", f"plus or minus {half:,.0f} users on each of them (95 %)")
    pair = half * math.sqrt(2 ** (n_parties - 2))
    if n_parties > 2:
        _figure("", f"plus or minus {pair:,.0f} on the users that two parties share")
    _figure("columns", "none is read, and nothing about a user is released but where it is one")
    _print_bounds(found)
    out.print()
    _print_sweep(found, epsilons)
    out.print()
    _print_sizes(found)
    for note in found.notes:
        _figure("note", note)
    out.print()
    _print_noise(found)


def _print_columns(study: Study) -> None:
    """Print which columns would decide the segments, if values were spread evenly."""
    shares = column_shares(study)
    equal = study.scaling == EQUAL
    if not equal and shares[0].share < _ABOUT_THE_SAME * shares[-1].share:
        return
    shown = ", ".join(f"{one.column} {one.share:.0%}" for one in shares[:_COLUMNS])
    more = f" and {len(shares) - _COLUMNS} more" if len(shares) > _COLUMNS else ""
    how = "as every column counts the same" if equal else "if values were spread evenly"
    out.print()
    _figure("columns", f"share of the distance, {how}: {shown}{more}")
    if not equal:
        _figure(
            "",
            "real numbers fill their bounds less, so categories count more than this; scaling = "
            '"equal" in the study lets every column count the same',
        )


def _print_loss(found: Forecast) -> None:
    loss = found.loss
    if loss is None:
        _figure("loss ratio", f"no forecast: {found.loss_refusal}")
        return
    typical, low, high = ratio(loss.typical), ratio(loss.low), ratio(loss.high)
    between = "" if low == high else f", from {low} to {high} {_DATA[loss.structure]}"
    _figure("loss ratio", f"{typical}{between}")
    if loss.typical >= MAX_RATIO:
        meaning = f"at least {MAX_RATIO:g} times what {_WITHOUT_PRIVACY}: the segments are noise"
    else:
        meaning = f"about {per_cent(loss.typical)} per cent more than {_WITHOUT_PRIVACY}"
    _figure("", f"the mean squared distance of users to their segment's centre is {meaning}")
    _print_limit(found)
    for note in found.loss_notes:
        _figure("", f"note: {note}")
    held_out = found.held_out
    if held_out is not None:
        often, worst = (
            math.ceil(held_out["ratio_factor"][share] * 100) / 100
            for share in ("nine_in_ten", "all")
        )
        _figure(
            "",
            f"(on {held_out['settings']} settings that the model had not seen: within a factor "
            f"{often} in nine of ten, {worst} at worst)",
        )


def _width(found: Forecast) -> str:
    """Return k', and how many labels a table has where those are fewer."""
    clusters, labels = max(found.plan.n_local_clusters), max(found.plan.n_labels)
    return str(clusters) if labels == clusters else f"{clusters} in {labels} labels"


def _print_limit(found: Forecast) -> None:
    """Print what the loss comes from, and so what would lower it."""
    share = found.noise_share
    assert share is not None, "there is no loss to explain"
    width = max(found.plan.n_local_clusters)
    noise = f"{share:.0%} comes from noise (lower with more users or a larger epsilon)"
    coarse = f"{1 - share:.0%} from coarse cells"
    if found.plan.bundles.is_trivial:
        coarse += f" (lower with more local clusters than {width})"
    _figure("", f"of the increase {noise}, {coarse}")


def _print_segment_error(found: Forecast) -> None:
    error = found.segment_error
    if error is None:
        _figure(
            "segment size",
            "no forecast of its error: it is for decoy, and without [detail]",
        )
        return
    average = found.users / found.study.n_clusters
    _figure(
        "segment size",
        f"plus or minus {WIDTH_95 * error:,.0f} users for a segment of {average:,.0f} (95 %, by "
        "noise alone; users near a border to another segment come on top)",
    )


def _print_bounds(found: Forecast) -> None:
    """Print the figures towards a party and the server, and what bounds towards parties cost."""
    largest = costs.towards_party(found.plan)
    if largest is not None:
        what, cost = largest
        total = costs.total_of(found.plan).epsilon
        server = f"{total:.4g} towards the server"
        party = f"{cost.epsilon:.4g} towards another party ({what})"
        first, second = (party, server) if cost.epsilon > total else (server, party)
        _figure("epsilon", f"{first}, {second}")
    for price in found.prices:
        _figure("", _price(price))
    if found.study.renewal is not None:
        _print_series(found.plan)


def _print_series(plan: Plan) -> None:
    """Print of how many runs the figures are, and what one of them costs."""
    runs = plan.study.n_runs
    _figure("series", f"epsilon, here and below, is of all {runs} runs together, not of each")
    one = costs.cost_of_runs(plan, 1)
    party, server = one.towards_party, one.towards_server.epsilon
    more = "" if party is None else f", {party.epsilon:.4g} towards another party"
    _figure("", f"who is there in one run alone: {server:.4g} towards the server{more}")
    _figure("", "errors and noise are those of every single run")


def _price(price: Price) -> str:
    """Return what a bound towards parties costs, in words."""
    parts = []
    if price.without.loss is not None and price.given.loss is not None:
        before, after = ratio(price.without.loss.typical), ratio(price.given.loss.typical)
        parts.append(f"loss ratio {after} instead of {before}")
    if price.more_noise is not None:
        parts.append(f"{price.more_noise:.3g} times the noise in local releases")
    before, after = number(price.without.cell_error), number(price.given.cell_error)
    parts.append(f"cell error {after} instead of {before} users")
    bound = f"{price.bound} = {price.value:g}"
    what = bound if price.chosen else f"with {bound} about"
    return f"{what}: {', '.join(parts)}"


def _print_sweep(found: Forecast, epsilons: tuple[float, ...]) -> None:
    points = found.sweep(epsilons)
    print_table(sweep_table(points, chosen=found.study.budget.epsilon))
    shown = {point.epsilon for point in points}
    left_out = [f"{epsilon:g}" for epsilon in epsilons if epsilon not in shown]
    if left_out:
        _line(
            f"left out, because exact accounting refuses it: epsilon {', '.join(left_out)}",
            indent="    ",
        )


def _answer(needed: EpsilonNeeded) -> str:
    typical = _epsilon(needed.typical)
    if needed.typical is None and needed.pessimistic is None:
        return f"{typical}; {needed.best.typical:.4g} at best"
    answer = typical
    if needed.pessimistic != needed.typical:
        answer += f" typically, {_epsilon(needed.pessimistic)} to be on the safe side"
    if needed.pessimistic is None:
        answer += f" ({needed.best.high:.4g} at best)"
    return answer


def _epsilon(epsilon: float | None) -> str:
    return f"no epsilon up to {MAX_EPSILON:g}" if epsilon is None else f"epsilon {epsilon:.3g}"


def _print_sizes(found: Forecast) -> None:
    sizes = found.sizes
    for party in found.study.party_names:
        _figure(
            "message",
            f"{party}: {shown_bytes(sizes.releases[party])} release, "
            f"{shown_bytes(sizes.small[party])} else",
        )
    _figure("", f"server: result of at most {shown_bytes(sizes.result)}")


def _print_noise(found: Forecast) -> None:
    error = number(found.cell_error)
    _figure("cell error", f"{error} users, one standard deviation of a counted cell")
    table = new_table("noise of every release (standard deviations)")
    for heading in ("party", "release", "on"):
        table.add_column(heading)
    table.add_column("noise", justify="right", no_wrap=True)
    table.add_column("unit", no_wrap=True)
    for level in found.noise:
        party = shown_party(level.party)
        table.add_row(party, level.release, level.what, number(level.deviation), level.unit)
    print_table(table)


def _figure(name: str, text: str) -> None:
    _line(f"{name:{len(_INDENT)}}{text}", indent=_INDENT)


def _line(text: str, *, indent: str) -> None:
    """Print a line, in a terminal broken between words; a pipe has it in one piece."""
    if out.is_terminal:
        text = textwrap.fill(text, out.width, subsequent_indent=indent, break_on_hyphens=False)
    out.print(text, markup=False, soft_wrap=True)


def sweep_table(points: Sequence[Point], *, chosen: float) -> Table:
    """Return the figures for each epsilon; the study's own epsilon is marked."""
    table = new_table("what other values of epsilon would give")
    # Headings of two lines, so that a narrow terminal has room for whole figures.
    headings = ["epsilon", "k'", "cell\nerror"]
    if any(point.loss for point in points):
        headings += ["loss\nratio", "range"]
    for heading in headings:
        justify: Literal["left", "right"] = "left" if heading == "range" else "right"
        table.add_column(heading, justify=justify, no_wrap=True, overflow="fold")
    for point in points:
        mark = "* " if point.epsilon == chosen else ""
        row = [f"{mark}{point.epsilon:g}", str(point.n_local_clusters), number(point.cell_error)]
        if point.loss is not None:
            row += [ratio(point.loss.typical), between(point.loss)]
        table.add_row(*row)
    return table


def ratio(value: float) -> str:
    """Return a ratio of losses as text."""
    return f">={MAX_RATIO:g}" if value >= MAX_RATIO else f"{value:.3f}"


def between(loss: LossForecast) -> str:
    """Return the range of a ratio of losses as text."""
    low, high = ratio(loss.low), ratio(loss.high)
    if loss.high >= MAX_RATIO:
        return low if low == high else f"{low} or more"
    return f"{low}-{high}"


def per_cent(loss_ratio: float) -> str:
    """Return how much more than 1 a ratio is, in per cent."""
    more = 100 * (loss_ratio - 1)
    return f"{more:z.1f}" if more < 10 else f"{more:z.0f}"
