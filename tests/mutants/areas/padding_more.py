"""Padding that is shorter than what it must hide."""

from tests.mutants.mutant import Mutant

LENGTHS = "tests/attacks/test_lengths.py"
VALUES = "tests/attacks/test_released_values.py"
TRACE = "tests/privacy/test_trace.py"

MUTANTS = [
    Mutant(
        file="src/splitmeans/run/party.py",
        old="plan = make_plan(self.what.study, released=state.released)",
        new="plan = make_plan(self.what.study)",
        breaks="a release is padded by the plan before the number of users was released",
        tests=(f"{VALUES}::test_released_size_that_collapses_padding",),
    ),
    Mutant(
        file="src/splitmeans/plan/size_stage.py",
        old="_TAIL = 50",
        new="_TAIL = 5",
        breaks="one table in a hundred is larger than its padding",
        tests=(VALUES, "tests/plan/test_stages.py"),
    ),
    Mutant(
        file="src/splitmeans/plan/message_sizes.py",
        old="users=users, deviations=_DEVIATIONS)",
        new="users=users, deviations=0)",
        breaks="padding holds the mean number of decoys",
        tests=(f"{VALUES}::test_padding_holds_any_number_of_decoys",),
    ),
    Mutant(
        file="src/splitmeans/membership/decoy/method.py",
        old="tags = 0 if equal_sets else 16 * length",
        new="tags = 0 if equal_sets else 8 * length",
        breaks="padding forgets half of every tag",
        tests=(LENGTHS, TRACE, "tests/forecasting/test_forecast.py"),
    ),
    Mutant(
        file="src/splitmeans/plan/plan.py",
        old="most = [max(own, 0) + stage.law.most_noise for (own,) in values]",
        new="most = [max(own, 0) for (own,) in values]",
        breaks="padding follows the released number without room for its noise",
        tests=(VALUES,),
    ),
]
