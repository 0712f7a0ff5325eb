"""Decoys and phantoms that repeat, tell their numbers, or leave cells out."""

from tests.mutants.mutant import Mutant

ENCODE = "src/splitmeans/membership/decoy/encode.py"
COUNTS = "src/splitmeans/kernels/counts.py"
DECOY = "tests/membership/test_decoy.py"
VIEW = "tests/privacy/test_decoy_server_view.py"
KERNEL = "tests/kernels/test_counts.py"
SKETCH = "tests/membership/test_sketch.py"

MUTANTS = [
    Mutant(
        file=COUNTS,
        old="if (cell // stride) % width == absent:",
        new=(
            "if (cell // stride) % width == absent or (\n"
            "            absent >= 0 and stride > 1 and cell % stride == stride - 1\n        ):"
        ),
        breaks="no decoys among users whom the other parties do not have",
        tests=(KERNEL, DECOY, VIEW),
    ),
    Mutant(
        file=ENCODE,
        old=(
            "keys.subkey(run_key, keys.DECOY_COUNT, group=group),\n"
            "        keys.subkey(run_key, keys.DECOY_TAG, group=group),"
        ),
        new=(
            "keys.subkey(run_key, keys.DECOY_COUNT),\n"
            "        keys.subkey(run_key, keys.DECOY_TAG, group=group),"
        ),
        breaks="cells of all groups have the same numbers of decoys",
        tests=(DECOY, VIEW),
    ),
    Mutant(
        file=ENCODE,
        old="        keys.subkey(run_key, keys.DECOY_TAG, group=group),\n",
        new="        keys.subkey(run_key, keys.DECOY_COUNT, group=group),\n",
        breaks="tags of decoys are the words that their numbers follow from",
        tests=(DECOY, VIEW),
    ),
    Mutant(
        file=COUNTS,
        old="tags[row, 1] = prf_word(key0, key1, counter + _ONE)",
        new="tags[row, 1] = prf_word(key0, key1, counter)",
        breaks="both words of a decoy's tag are the same",
        tests=(KERNEL, DECOY, VIEW),
    ),
    Mutant(
        file="src/splitmeans/wire/keys.py",
        old="for party in sorted(contributions)\n",
        new="for party in sorted(contributions)[:-1]\n",
        breaks="one party's contribution is not in the run key",
        tests=("tests/wire/test_keys.py",),
    ),
    Mutant(
        file="src/splitmeans/party/node.py",
        old="if word.shared_check != expected.shared_check:",
        new="if False:",
        breaks="parties that derive different decoys go on",
        tests=("tests/protocol/test_derivation.py", "tests/protocol/test_party_node.py"),
    ),
    Mutant(
        file="src/splitmeans/membership/sketch/encode.py",
        old="phantom_key=subkey(run_key, PHANTOM_REGISTERS, group=group),",
        new="phantom_key=subkey(run_key, PHANTOM_REGISTERS),",
        breaks="phantoms repeat from group to group",
        tests=(SKETCH,),
    ),
    Mutant(
        file="src/splitmeans/kernels/phantoms.py",
        old="counter = (_Word(row) << _32) | _Word(cell)",
        new="counter = _Word(row) << _32",
        breaks="all cells of a row have the same phantoms",
        tests=(SKETCH, "tests/membership/test_registers.py"),
    ),
]
