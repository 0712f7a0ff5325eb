"""Message lengths that follow from rows."""

from tests.mutants.mutant import Mutant

LENGTHS = ("tests/attacks/test_lengths.py", "tests/privacy/test_trace.py")

MUTANTS = [
    Mutant(
        file="src/splitmeans/run/post.py",
        old='payload = payload.ljust(padded_length(len(payload), release_length), b"\\0")',
        new="payload = payload.ljust(len(payload))",
        breaks="a release is sent without padding",
        tests=LENGTHS,
    ),
    Mutant(
        file="src/splitmeans/plan/message_sizes.py",
        old="        length = min(2 * length, _MAX_PADDED_BYTES)\n",
        new="        length = min(size, _MAX_PADDED_BYTES)\n",
        breaks="a release that is too long is padded to its own length",
        tests=LENGTHS,
    ),
    Mutant(
        file="src/splitmeans/membership/decoy/column_labels.py",
        old="        found.append(own)\n",
        new="        found.append(edges[place])\n",
        breaks="edges of columns are as many as there are bins",
        tests=("tests/membership/test_column_tables.py",),
    ),
]
