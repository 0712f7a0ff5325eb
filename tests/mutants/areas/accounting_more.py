"""Costs of fewer runs, parties, pairs or coordinates, and tails that are dropped."""

from tests.mutants.mutant import Mutant

VIEWS = "src/splitmeans/plan/views.py"
LOSSES = "tests/privacy/test_losses.py"
PLD = "tests/privacy/test_pld.py"
POOLED = "tests/plan/test_pooled_parties.py"
SERIES = "tests/plan/test_series.py"
PLAN = ("tests/plan/test_plan.py", "tests/plan/test_statement.py")
BOUNDS = "tests/plan/test_party_bounds.py"
SLACK = "tests/privacy/test_discrete_slack.py"
MEANINGS = "tests/plan/test_meanings.py"

MUTANTS = [
    Mutant(
        file="src/splitmeans/privacy/losses.py",
        old="share = np.clip(np.expm1(cells * width - losses) / math.expm1(-width), 0.0, 1.0)",
        new="share = np.rint(losses / width - cells)",
        breaks="losses are rounded to the nearest point of the grid",
        tests=(LOSSES,),
    ),
    Mutant(
        file="src/splitmeans/privacy/losses.py",
        old="infinite = min(1.0, grid.infinite + float(grid.mass[stop:].sum()))",
        new="infinite = grid.infinite",
        breaks="the largest losses are cut off and forgotten",
        tests=(LOSSES,),
    ),
    Mutant(
        file="src/splitmeans/privacy/losses.py",
        old="count * math.log1p(-one.infinite)) + outside)",
        new="count * math.log1p(-one.infinite)))",
        breaks="what a window does not hold is forgotten",
        tests=(LOSSES,),
    ),
    Mutant(
        file="src/splitmeans/privacy/losses.py",
        old="math.log((tail[first] + grid.infinite - delta) / weighted[first])",
        new="math.log((tail[first] - delta) / weighted[first])",
        breaks="epsilon is read off without losses that have no bound",
        tests=(LOSSES, PLD),
    ),
    Mutant(
        file="src/splitmeans/privacy/pld.py",
        old="math.exp(gap.loss) * delta + gap.delta(epsilon)",
        new="delta + gap.delta(epsilon)",
        breaks="delta does not grow with what is added to losses",
        tests=(PLD, SLACK),
    ),
    Mutant(
        file="src/splitmeans/privacy/pld.py",
        old="(1 + math.exp(epsilon)) * self.distance",
        new="math.exp(epsilon) * self.distance",
        breaks="one of two laws that are off is not charged",
        tests=(PLD, "tests/privacy/test_sketch_law.py"),
    ),
    Mutant(
        file="src/splitmeans/privacy/gaussian.py",
        old="((_DEVIATIONS + mu) / scale) ** 2 / 8",
        new="(_DEVIATIONS / scale) ** 2 / 8",
        breaks="slack without the shift that a user makes",
        tests=(SLACK,),
    ),
    Mutant(
        file="src/splitmeans/local/laws/survey.py",
        old="coordinates=c * (c - 1) // 2,",
        new="coordinates=c,",
        breaks="survey: slack of as many products as columns",
        tests=("tests/local/test_survey.py", SLACK),
    ),
    Mutant(
        file=VIEWS,
        old="found += sorted(events, key=_size)[-n:]",
        new="found += sorted(events, key=_size)[:n]",
        breaks="parties together are charged for the cheapest releases",
        tests=(POOLED,),
    ),
    Mutant(
        file=VIEWS,
        old="for size in range(2, n_parties):",
        new="for size in range(2, min(n_parties, 3)):",
        breaks="three or more parties are never taken to share what they know",
        tests=(POOLED,),
    ),
    Mutant(
        file=VIEWS,
        old="times = plan.study.n_runs if runs is None else runs",
        new="times = 1 if runs is None else runs",
        breaks="towards a party a series costs what one run does",
        tests=(SERIES,),
    ),
    Mutant(
        file=VIEWS,
        old="_staged_events(plan, Relation.REPLACE, without=name)\n        one_run",
        new="_staged_events(plan, Relation.ADD_OR_REMOVE, without=name)\n        one_run",
        breaks="towards a coalition values that are learned cost as if a user left",
        tests=(
            f"{POOLED}::test_the_server_with_several_parties_is_covered_by_the_server_with_one",
        ),
    ),
    Mutant(
        file=VIEWS,
        old="cells += [plan.columns.event] * 2",
        new="cells += [plan.columns.event]",
        breaks="an id that is spelled apart is in one cell of a table of columns",
        tests=("tests/privacy/test_obligations.py", "tests/protocol/test_column_tables_runs.py"),
    ),
    Mutant(
        file="src/splitmeans/plan/bounds.py",
        old="return epsilon if asked is None else min(asked, epsilon)",
        new="return epsilon if asked is None else asked",
        breaks="counts alone: a study may let parties learn more than the server",
        tests=(BOUNDS, "tests/study/test_counting.py"),
    ),
    Mutant(
        file="src/splitmeans/plan/bounds.py",
        old="        local = min(local, own)\n",
        new="        local = own\n",
        breaks="a bound towards a coalition takes the one towards a party away",
        tests=(BOUNDS,),
    ),
    Mutant(
        file="src/splitmeans/privacy/calibrate.py",
        old="return all(delta <= budget.delta for delta in deltas)",
        new="return any(delta <= budget.delta for delta in deltas)",
        breaks="a budget is kept if one of the onlookers' views fits",
        tests=(BOUNDS, "tests/privacy/test_calibrate.py"),
    ),
    Mutant(
        file="src/splitmeans/plan/plan.py",
        old="tuple(self.law_of(group).event for group in self.groups))",
        new="tuple(self.law_of(group).event for group in self.groups[:-1] or self.groups))",
        breaks="one of several pairs of parties costs nothing",
        tests=PLAN,
    ),
    Mutant(
        file="src/splitmeans/plan/plan.py",
        old="ComposedEvent(parts=(event, law.event)) for event, law in both",
        new="ComposedEvent(parts=(event,)) for event, law in both",
        breaks="detail costs nothing",
        tests=("tests/protocol/test_detail_runs.py", "tests/local/test_detail.py"),
    ),
    Mutant(
        file="src/splitmeans/plan/settle.py",
        old="    if not _is_covered(first, later):\n        raise PrivacyError(",
        new="    if False:\n        raise PrivacyError(",
        breaks="a run goes on with other noise than was composed",
        tests=("tests/plan/test_plan.py", "tests/plan/test_stages.py"),
    ),
    Mutant(
        file="src/splitmeans/plan/categories_stage.py",
        old="RareEvent(probability=n_counts * self.shown)",
        new="RareEvent(probability=self.shown)",
        breaks="categories of several columns may show for the price of one",
        tests=("tests/protocol/test_open_categories.py",),
    ),
    Mutant(
        file="src/splitmeans/membership/decoy/column_tables.py",
        old="ComposedEvent(parts=(self.law.event,) * len(self.tables))",
        new="ComposedEvent(parts=(self.law.event,))",
        breaks="all tables of columns cost what one does",
        tests=(
            "tests/protocol/test_column_tables_runs.py",
            "tests/membership/test_column_tables.py",
        ),
    ),
    Mutant(
        file="src/splitmeans/plan/observers.py",
        old='return f"e^{math.ceil(1000 * epsilon) / 1000:g}"',
        new='return f"e^{math.floor(1000 * epsilon) / 1000:g}"',
        breaks="a large factor in words is rounded down",
        tests=(MEANINGS,),
    ),
    Mutant(
        file="src/splitmeans/plan/observers.py",
        old="bound = (1 + odds * cost.delta) / (1 + odds)",
        new="bound = 1 / (1 + odds)",
        breaks="the share of right guesses in words leaves delta out",
        tests=(MEANINGS,),
    ),
    Mutant(
        file="src/splitmeans/plan/observers.py",
        old="distance = max(delta_for(view, 0.0, interval=interval) for view in views)",
        new="distance = min(delta_for(view, 0.0, interval=interval) for view in views)",
        breaks="the share of right guesses in words is that of who sees least",
        tests=(MEANINGS,),
    ),
]
