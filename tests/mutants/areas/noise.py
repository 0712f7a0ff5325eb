"""Noise that is missing, too small, shared, or drawn twice."""

from tests.mutants.mutant import Mutant

DRAWN = "tests/statistical/test_drawn_noise.py"
RELEASED = "tests/statistical/test_released_noise.py"
GAUSSIAN = f"{RELEASED}::test_gaussian_noise_of_parties_is_that_of_their_events"
PHANTOMS = f"{RELEASED}::test_phantoms_are_as_many_as_their_event_says"
SERVER = (
    "tests/statistical/test_table_noise.py"
    "::test_the_servers_noise_is_that_of_the_cost_towards_parties"
)
REPEATED = "tests/attacks/test_draws.py"

MUTANTS = [
    Mutant(
        file="src/splitmeans/server/column_tables.py",
        old="noisy_tables=add_server_noise(law, counts, noise=noise),",
        new="noisy_tables=counts,",
        breaks="no server noise on tables of columns",
        tests=(SERVER,),
    ),
    Mutant(
        file="src/splitmeans/membership/decoy/estimate.py",
        old="own = law if presence is None or table.ndim == 2 else presence",
        new="own = law",
        breaks="server noise of pair tables on the presence table",
        tests=(SERVER,),
    ),
    Mutant(
        file="src/splitmeans/local/detail.py",
        old="gaussian_counts(raw[:n_columns], scale=self.cluster_scale, noise=noise)",
        new="gaussian_counts(raw[:n_columns], scale=self.cluster_scale // 2, noise=noise)",
        breaks="detail: columns in clusters with half their noise",
        tests=(GAUSSIAN,),
    ),
    Mutant(
        file="src/splitmeans/local/detail.py",
        old="noisy = gaussian_counts(raw, scale=self.whole_scale, noise=noise)",
        new="noisy = gaussian_counts(raw, scale=self.whole_scale // 2, noise=noise)",
        breaks="detail: whole columns with half their noise",
        tests=(GAUSSIAN,),
    ),
    Mutant(
        file="src/splitmeans/local/detail.py",
        old="gaussian_counts(raw[n_columns:], scale=self.pair_scale, noise=noise)",
        new="gaussian_counts(raw[n_columns:], scale=self.cluster_scale, noise=noise)",
        breaks="detail: pairs of columns with the noise of columns",
        tests=(DRAWN,),
    ),
    Mutant(
        file="src/splitmeans/party/release.py",
        old="n_pairs=law.n_pairs, mu=law.mu)",
        new="n_pairs=law.n_pairs, mu=2 * law.mu)",
        breaks="detail: a party asks with half the noise of its plan",
        tests=(DRAWN,),
    ),
    Mutant(
        file="src/splitmeans/local/law.py",
        old="(raw_counts * COUNT_UNITS + errors) / COUNT_UNITS",
        new="(raw_counts * COUNT_UNITS + errors // 2) / COUNT_UNITS",
        breaks="noise is drawn in full and halved before it is added",
        tests=(GAUSSIAN,),
    ),
    Mutant(
        file="src/splitmeans/membership/decoy/estimate.py",
        old="noise.gaussian(own.server_sigma, n_cells)",
        new="noise.gaussian(own.server_sigma, 1)",
        breaks="all cells of a table share one draw of server noise",
        tests=(SERVER,),
    ),
    Mutant(
        file="src/splitmeans/server/column_tables.py",
        old="add_server_noise(law, counts, noise=noise)",
        new='add_server_noise(law, counts, noise=noise.spawn("table"))',
        breaks="all tables of columns have the same server noise",
        tests=(DRAWN,),
    ),
    Mutant(
        file="src/splitmeans/local/guided_lloyd.py",
        old="noise.gaussian(_scale(radius, mu=mu), len(alike)",
        new="noise.gaussian(_scale(radii.min(), mu=mu), len(alike)",
        breaks="local rounds: large clusters with the noise of the smallest",
        tests=(GAUSSIAN,),
    ),
    Mutant(
        file="src/splitmeans/local/survey.py",
        old="raw + noise.gaussian(self.product_scale, len(raw))",
        new="raw + 0 * noise.gaussian(self.product_scale, len(raw))",
        breaks="survey: products are drawn for and released without noise",
        tests=(GAUSSIAN,),
    ),
    Mutant(
        file="src/splitmeans/party/private_bounds.py",
        old="count_round(law.columns, rows, bins, scale=scale, noise=noise)",
        new="count_round(law.columns, rows, bins, scale=min(law.scales), noise=noise)",
        breaks="learned bounds: every round with the noise of the first",
        tests=(DRAWN,),
    ),
    Mutant(
        file="src/splitmeans/party/open_categories.py",
        old="if noisy_counts[at] > law.threshold",
        new="if noisy_counts[at] > law.threshold - law.scale / 2**20",
        breaks="learned categories: a threshold one deviation lower",
        tests=(RELEASED,),
    ),
    Mutant(
        file="src/splitmeans/membership/decoy/direct_labels.py",
        old="changed = words >= np.uint64(response.true_words)",
        new="changed = words >= np.uint64(response.true_words + response.other_words)",
        breaks="randomised labels are kept too often",
        tests=(RELEASED,),
    ),
    Mutant(
        file="src/splitmeans/membership/sketch/encode.py",
        old="    raise_to_phantoms(\n        registers,\n",
        new="    raise_to_phantoms(\n        registers.copy(),\n",
        breaks="registers without phantoms",
        tests=(PHANTOMS,),
    ),
    Mutant(
        file="src/splitmeans/privacy/keyed_noise.py",
        old='hmac.digest(self.key, text, "sha256")',
        new="self.key",
        breaks="keyed noise: every purpose has the same draws",
        tests=("tests/privacy/test_keyed_noise.py",),
    ),
    Mutant(
        file="src/splitmeans/run/server.py",
        old="noise = KeyedNoise(key)",
        new="noise = SecureNoise()",
        breaks="a server that starts again draws again",
        tests=(REPEATED,),
    ),
    Mutant(
        file="src/splitmeans/run/server.py",
        old="        digest.update(release.digest())",
        new="        release.digest()",
        breaks="the server's draw does not depend on the releases",
        tests=(REPEATED,),
    ),
]
