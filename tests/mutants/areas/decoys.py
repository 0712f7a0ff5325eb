"""Decoys that are missing, follow another law, or can be told from users."""

from tests.mutants.mutant import Mutant

DECOY = "tests/membership/test_decoy.py"
VIEW = "tests/privacy/test_decoy_server_view.py"
TABLES = "tests/statistical/test_table_noise.py::test_decoys_are_as_many_as_their_event_says"

MUTANTS = [
    Mutant(
        file="src/splitmeans/membership/decoy/encode.py",
        old="n_cells=cell_count(shape) if n_cells is None else n_cells,",
        new="n_cells=cell_count(shape) - 1 if n_cells is None else n_cells,",
        breaks="the last cell of a table has no decoys",
        tests=(DECOY, VIEW),
    ),
    Mutant(
        file="src/splitmeans/membership/decoy/encode.py",
        old="keys.subkey(run_key, keys.DECOY_TAG, group=group)",
        new="keys.subkey(run_key, keys.DECOY_TAG)",
        breaks="tags of decoys repeat from group to group",
        tests=(DECOY, VIEW),
    ),
    Mutant(
        file="src/splitmeans/membership/decoy/encode.py",
        old="tag_key=keys.subkey(run_key, keys.USER_TAG, group=group),",
        new="tag_key=keys.subkey(run_key, keys.USER_TAG),",
        breaks="a user's tag is the same in every group",
        tests=(DECOY, VIEW),
    ),
    Mutant(
        file="src/splitmeans/membership/decoy/encode.py",
        old="sample_key=keys.subkey(run_key, keys.SAMPLE),",
        new="sample_key=keys.subkey(run_key, keys.USER_TAG, group=group),",
        breaks="users are sampled by their tags, decoys are not",
        tests=(DECOY, VIEW),
    ),
    Mutant(
        file="src/splitmeans/membership/decoy/encode.py",
        old="    if not ascending(tags):\n",
        new="    if False:\n",
        breaks="a party sends tags that repeat",
        tests=(DECOY,),
    ),
    Mutant(
        file="src/splitmeans/party/column_tables.py",
        old="keys.subkey(run_key, keys.COLUMNS, group=table.place)",
        new="keys.subkey(run_key, keys.COLUMNS, group=table.parties)",
        breaks="tables of columns of two parties have the same decoys",
        tests=("tests/membership/test_column_tables.py",),
    ),
    Mutant(
        file="src/splitmeans/membership/decoy/layout.py",
        old="        return presence, (1,) * len(n_local_clusters)",
        new="        return law, (1,) * len(n_local_clusters)",
        breaks="the presence table has the decoys of pair tables",
        tests=("tests/membership/test_presence_table.py", TABLES),
    ),
    Mutant(
        file="src/splitmeans/membership/decoy/law.py",
        old="return _cdf_table(float(self.sigma), int(self.truncation))",
        new="return _cdf_table(float(self.sigma) / 2, int(self.truncation))",
        breaks="decoys are drawn at half the scale that is accounted for",
        tests=(TABLES,),
    ),
    Mutant(
        file="src/splitmeans/kernels/counts.py",
        old="                and label < labels[place - 1]\n",
        new="                and False\n",
        breaks="records with equal tags keep the order they were made in",
        tests=("tests/kernels/test_counts.py",),
    ),
    Mutant(
        file="src/splitmeans/wire/keys.py",
        old='salt=transcript, info=b"splitmeans run key 1"',
        new='salt=b"", info=b"splitmeans run key 1"',
        breaks="the run key does not depend on study, run and plan",
        tests=("tests/wire/test_keys.py", "tests/protocol/test_derivation.py"),
    ),
]
