"""A ledger that forgets costs or allows more than its limits."""

from tests.mutants.mutant import Mutant

LEDGER = "tests/privacy/test_ledger.py"
RULES = "src/splitmeans/privacy/ledger_rules.py"

MUTANTS = [
    Mutant(
        file=RULES,
        old="first is None or not _covers(first, entry):",
        new="first is None:",
        breaks="a charge covers releases of any source",
        tests=(LEDGER,),
    ),
    Mutant(
        file=RULES,
        old="    free = free and all(getattr(entry, name) is None for name in _TOWARDS)\n",
        new="",
        breaks="a covered release may have costs towards participants",
        tests=(LEDGER,),
    ),
    Mutant(
        file=RULES,
        old="_SUMS.add(before[name], _exact(math.inf if cost is None else cost))",
        new="_exact(math.inf if cost is None else cost)",
        breaks="only the last charge counts",
        tests=(LEDGER,),
    ),
    Mutant(
        file=RULES,
        old="_exact(math.inf if cost is None else cost)",
        new="_exact(0.0 if cost is None else cost)",
        breaks="a cost that was not recorded is nothing",
        tests=(LEDGER,),
    ),
    Mutant(
        file=RULES,
        old='if release in self.released and entry.kind != "added":',
        new="if False:",
        breaks="a release can be made twice",
        tests=(LEDGER,),
    ),
    Mutant(
        file=RULES,
        old="        if self.restored is not None:\n",
        new="        if False:\n",
        breaks="a restored home charges before it has recovered",
        tests=(LEDGER, "tests/run/test_backup.py"),
    ),
    Mutant(
        file=RULES,
        old="{one: _SUMS.add(before[one], sums[one]) for one in AMOUNTS}",
        new="before",
        breaks="what a name has spent is lost when it joins a data set",
        tests=(LEDGER,),
    ),
    Mutant(
        file="src/splitmeans/privacy/series.py",
        old="    if first is not None:\n",
        new="    if False:\n",
        breaks="a slot of a series is given twice",
        tests=("tests/privacy/test_series.py",),
    ),
    Mutant(
        file="src/splitmeans/privacy/limits.py",
        old="Limit(**{name: min(both)",
        new="Limit(**{name: max(both)",
        breaks="the looser of two limits holds when a name joins a data set",
        tests=(LEDGER,),
    ),
]
