"""Costs that are left out, and checks of costs that accept too much."""

from tests.mutants.mutant import Mutant

COVERS = "tests/privacy/test_covers.py"
PLD = "tests/privacy/test_pld.py"
INDEPENDENT = "tests/privacy/test_independent_epsilon.py"
VIEWS = ("tests/plan/test_plan.py", "tests/plan/test_statement.py")

MUTANTS = [
    Mutant(
        file="src/splitmeans/privacy/events.py",
        old="    match accounted, made:\n",
        new="    return True\n    match accounted, made:\n",
        breaks="an accounted event covers any other",
        tests=(COVERS,),
    ),
    Mutant(
        file="src/splitmeans/privacy/events.py",
        old="                and made.slack <= accounted.slack\n",
        new="",
        breaks="an accounted event covers one with more slack",
        tests=(COVERS,),
    ),
    Mutant(
        file="src/splitmeans/privacy/events.py",
        old="len(accounted) == len(made) and all(map(covers, accounted, made))",
        new="all(map(covers, accounted, made))",
        breaks="accounted events cover further ones",
        tests=(COVERS,),
    ),
    Mutant(
        file="src/splitmeans/plan/settle.py",
        old="        party_events,\n        coalition_events,\n",
        new="",
        breaks="a later plan is compared for the server alone",
        tests=(COVERS,),
    ),
    Mutant(
        file="src/splitmeans/plan/views.py",
        old="moves = 2 if known or relation is Relation.REPLACE else 1",
        new="moves = 1",
        breaks="towards a party a user who moves changes one cell",
        tests=VIEWS,
    ),
    Mutant(
        file="src/splitmeans/plan/views.py",
        old="moved = 2 * len(plan.columns.tables)",
        new="moved = len(plan.columns.tables)",
        breaks="towards a party tables of columns cost half",
        tests=("tests/protocol/test_column_tables_runs.py",),
    ),
    Mutant(
        file="src/splitmeans/plan/views.py",
        old="GaussianEvent(noise_multiplier=multiplier / 2, slack=10 * slack)",
        new="GaussianEvent(noise_multiplier=multiplier, slack=10 * slack)",
        breaks="a replaced user costs as much as one who leaves",
        tests=VIEWS,
    ),
    Mutant(
        file="src/splitmeans/plan/plan.py",
        old="return self.events * self.study.n_runs",
        new="return self.events",
        breaks="a series costs what one of its runs does",
        tests=("tests/plan/test_series.py",),
    ),
    Mutant(
        file="src/splitmeans/plan/plan.py",
        old="joined = () if self.columns is None else (self.columns.event,)",
        new="joined = ()",
        breaks="tables of columns cost nothing towards the server",
        tests=("tests/protocol/test_column_tables_runs.py",),
    ),
    Mutant(
        file="src/splitmeans/plan/plan.py",
        old="_SLACK_ROOM = 100.0",
        new="_SLACK_ROOM = 1.0",
        breaks="no slack for categories that are still to be learned",
        tests=("tests/protocol/test_open_categories.py",),
    ),
    Mutant(
        file="src/splitmeans/privacy/pld.py",
        old="                loss += own\n",
        new="                loss += 0 * own\n",
        breaks="what whole numbers add to a loss is not charged",
        tests=(PLD, "tests/privacy/test_discrete_slack.py"),
    ),
    Mutant(
        file="src/splitmeans/privacy/pld.py",
        old="                rare += own\n",
        new="                rare += 0 * own\n",
        breaks="outcomes that show a user cost no delta",
        tests=("tests/protocol/test_open_categories.py::test_rare_outcomes_are_added_to_delta",),
    ),
    Mutant(
        file="src/splitmeans/privacy/pld.py",
        old="math.fsum(part.noise_multiplier**-2 for part in gaussians)",
        new="max(part.noise_multiplier**-2 for part in gaussians)",
        breaks="Gaussian releases cost what the dearest of them does",
        tests=(PLD, INDEPENDENT),
    ),
    Mutant(
        file="src/splitmeans/privacy/pld.py",
        old="delta = max(delta_at(grid, epsilon - gap.loss) for grid in grids)",
        new="delta = min(delta_at(grid, epsilon - gap.loss) for grid in grids)",
        breaks="delta is that of the cheaper direction",
        tests=(PLD, INDEPENDENT),
    ),
    Mutant(
        file="src/splitmeans/privacy/losses.py",
        old="infinite = one.infinite + other.infinite - one.infinite * other.infinite",
        new="infinite = max(one.infinite, other.infinite)",
        breaks="losses without bound do not add up",
        tests=(PLD, "tests/privacy/test_losses.py"),
    ),
]
