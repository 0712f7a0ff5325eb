"""A ledger that charges late, the wrong people, or too little, or can be rewritten."""

from tests.mutants.mutant import Mutant

RULES = "src/splitmeans/privacy/ledger_rules.py"
LEDGER = "tests/privacy/test_ledger.py"
SERIES = "tests/privacy/test_series.py"
STATE = "tests/attacks/test_state.py"

MUTANTS = [
    Mutant(
        file=RULES,
        old="_check_limit(source, after, limit)",
        new="_check_limit(source, before, limit)",
        breaks="a limit is compared with what was spent before a run",
        tests=(LEDGER,),
    ),
    Mutant(
        file=RULES,
        old="if value is not None}\n",
        new="if value is not None and name not in _TOWARDS}\n",
        breaks="costs towards participants are not in the chain",
        tests=(LEDGER,),
    ),
    Mutant(
        file=RULES,
        old="return near if _exact(near) >= total else math.nextafter(near, math.inf)",
        new="return near",
        breaks="what was spent is rounded to the nearest",
        tests=(LEDGER,),
    ),
    Mutant(
        file=RULES,
        old="        source = self.data_sets.owner(entry.source)\n        check_cost",
        new="        source = entry.source\n        check_cost",
        breaks="a name that is part of a data set is charged on its own",
        tests=(LEDGER,),
    ),
    Mutant(
        file=RULES,
        old="self.limits[whole] = limit if own is None else own.tightened(limit)",
        new="self.limits[whole] = limit if own is None else own",
        breaks="a tighter limit is lost when a name joins a data set",
        tests=(LEDGER,),
    ),
    Mutant(
        file=RULES,
        old="if towards is None or towards.party_relation == VALUES:",
        new="if towards is None:",
        breaks="a sum says that it covers presence where a run does not",
        tests=(LEDGER,),
    ),
    Mutant(
        file="src/splitmeans/privacy/ledger.py",
        old="if seen[0] > len(rows) or hashes[seen[0]] != seen[1]:",
        new="if seen[0] > len(rows):",
        breaks="a ledger is replaced by another one of the same length",
        tests=(LEDGER, "tests/run/test_journal.py", STATE),
    ),
    Mutant(
        file="src/splitmeans/privacy/series.py",
        old="not 1 <= number <= series.series_runs:",
        new="not 1 <= number <= series.series_runs + 1:",
        breaks="a series has one slot more than it was charged for",
        tests=(SERIES,),
    ),
    Mutant(
        file="src/splitmeans/privacy/series.py",
        old="if entry.series_events != series.series_events:",
        new="if False:",
        breaks="a run of a series has other noise than was charged",
        tests=(SERIES,),
    ),
    Mutant(
        file="src/splitmeans/run/charging.py",
        old="RELEASES = kinds_of((StageRelease, PartyRelease))",
        new="RELEASES = kinds_of((PartyRelease,))",
        breaks="what is learned before the main release is not charged",
        tests=("tests/attacks/test_state.py", "tests/e2e/test_commands.py"),
    ),
    Mutant(
        file="src/splitmeans/run/charging.py",
        old="            ledger.cover(source, **facts)\n            continue\n",
        new="            continue\n",
        breaks="later releases of a run are not recorded",
        tests=(STATE, "tests/attacks/test_plans.py"),
    ),
    Mutant(
        file="src/splitmeans/run/party.py",
        old="            self._charge(releases, late=True)\n",
        new="",
        breaks="a home from a backup forgets what the mailbox shows it released",
        tests=(STATE,),
    ),
    Mutant(
        file="src/splitmeans/run/people_records.py",
        old="return max(self) >= SAME",
        new="return min(self) >= SAME",
        breaks="an extract of a table counts as other people",
        tests=("tests/privacy/test_people.py",),
    ),
    Mutant(
        file="src/splitmeans/run/people_records.py",
        old='text = "\\n".join(("splitmeans people note 1", *run, sha256))',
        new='text = "\\n".join(("splitmeans people note 1", sha256))',
        breaks="charges that are shown tell whether anybody came or went",
        tests=(
            "tests/evidence/test_bundle.py::test_two_archives_do_not_tell_whether_people_came_or_went",
        ),
    ),
    Mutant(
        file="src/splitmeans/run/backup.py",
        old='"state_sha256 = NULL WHERE outcome IS NULL",',
        new='"state_sha256 = NULL WHERE 0",',
        breaks="a backup has the secrets of runs that go on",
        tests=("tests/run/test_backup.py",),
    ),
    Mutant(
        file="src/splitmeans/run/charging.py",
        old="ledger.check_room(source, cost, beside=list(beside.values()))",
        new="ledger.check_room(source, cost)",
        breaks="two runs at once have room for one",
        tests=(STATE,),
    ),
]
