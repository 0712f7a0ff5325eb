"""Breaks at the edges: between pieces, purposes, parties, runs and transactions."""

from tests.mutants.mutant import Mutant

MUTANTS = [
    Mutant(
        file="src/splitmeans/privacy/exact_noise.py",
        old="            if number < bound:\n                return number\n",
        new="            return number % bound\n",
        breaks="keyed noise: numbers beyond a bound are folded back below it",
        tests=("tests/privacy/test_keyed_noise.py",),
    ),
    Mutant(
        file="src/splitmeans/party/private_bounds.py",
        old="    return gaussian_counts(raw_counts, scale=scale, noise=noise)\n",
        new=(
            "    shared = gaussian_counts(0 * raw_counts[:1], scale=scale, noise=noise)\n"
            "    return raw_counts + shared\n"
        ),
        breaks="learned bounds: all columns share one draw of noise",
        tests=("tests/party/test_range_search.py",),
    ),
    Mutant(
        file="src/splitmeans/plan/categories_stage.py",
        old="RareEvent(probability=n_counts * self.shown)",
        new="RareEvent(probability=len(self.columns) * self.shown)",
        breaks="a replaced category shows as rarely as one that leaves",
        tests=("tests/protocol/test_open_categories.py",),
    ),
    Mutant(
        file="src/splitmeans/plan/costs.py",
        old="interval=step_of(plan), runs=runs)",
        new="interval=step_of(plan), runs=1)",
        breaks="towards a party being in several runs costs what one run does",
        tests=("tests/plan/test_series.py",),
    ),
    Mutant(
        file="src/splitmeans/membership/decoy/encode.py",
        old='        yield counts.astype("<i8").tobytes()\n',
        new="",
        breaks="parties do not compare how many decoys later cells have",
        tests=("tests/protocol/test_derivation.py",),
    ),
    Mutant(
        file="src/splitmeans/plan/message_sizes.py",
        old="length = min(2 * length, _MAX_PADDED_BYTES)",
        new="length = min(length + length // 16, _MAX_PADDED_BYTES)",
        breaks="a release that is too long grows in small steps",
        tests=("tests/attacks/test_lengths.py",),
    ),
    Mutant(
        file="src/splitmeans/run/preflight.py",
        old="            users *= 2\n",
        new="            users = rows or 0\n",
        breaks="the room that a party reserves tells its number of users",
        tests=("tests/run/test_preflight.py",),
    ),
    Mutant(
        file="src/splitmeans/wire/keys.py",
        old="        sha256(party.encode()).digest() + contributions[party] for party in",
        new="        contributions[party] for party in",
        breaks="the run key does not depend on whose contributions they are",
        tests=("tests/wire/test_keys.py",),
    ),
    Mutant(
        file="src/splitmeans/wire/keys.py",
        old='info=f"splitmeans share 1 {label}".encode()',
        new='info=b"splitmeans share 1"',
        breaks="shares for several parties are made of the same randomness",
        tests=("tests/protocol/test_equal_users.py",),
    ),
    Mutant(
        file="src/splitmeans/privacy/ledger.py",
        old="if not self._connection.in_transaction:",
        new="if not self._connection:",
        breaks="a charge is written apart from the release that it pays for",
        tests=("tests/privacy/test_ledger.py",),
    ),
    Mutant(
        file="src/splitmeans/privacy/ledger.py",
        old="if seen[0] > len(rows) or hashes[seen[0]] != seen[1]:",
        new="if hashes[min(seen[0], len(rows))] != seen[1] and seen[0] <= len(rows):",
        breaks="a ledger whose end was cut off is whole",
        tests=("tests/run/test_journal.py::test_an_older_database_is_found_out",),
    ),
]
