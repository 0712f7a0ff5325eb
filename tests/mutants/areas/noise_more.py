"""Noise for a smaller change than a user makes, of a scale on the wrong side, or left out."""

from tests.mutants.mutant import Mutant

SURVEY = "tests/local/test_survey.py"
GUIDED = "tests/local/test_guided_lloyd.py"

MUTANTS = [
    Mutant(
        file="src/splitmeans/local/laws/survey.py",
        old="(c - 1) // (2 * c) + 1",
        new="(c - 1) // (4 * c) + 1",
        breaks="survey: noise on products for a shorter vector",
        tests=(SURVEY,),
    ),
    Mutant(
        file="src/splitmeans/kernels/histograms.py",
        old="if squares[i] > longest * longest:",
        new="if squares[i] > 2 * longest * longest:",
        breaks="survey: scores somewhat too long are not clipped",
        tests=("tests/kernels/test_histograms.py", SURVEY),
    ),
    Mutant(
        file="src/splitmeans/kernels/coded_rows.py",
        old="square += offsets[f] * offsets[f]\n",
        new="square += offsets[f] * offsets[f] * (levels[j] == 0)\n",
        breaks="local rounds: columns of levels do not count when a row is clipped",
        tests=("tests/kernels/test_coded_rows.py",),
    ),
    Mutant(
        file="src/splitmeans/kernels/assign.py",
        old="offset = np.int64(gaps[j])\n",
        new="offset = np.int64(np.rint(gaps[j]))\n",
        breaks="local rounds: clipped rows are rounded to the nearest, so some are too long",
        tests=("tests/kernels/test_clipped_sums.py", GUIDED),
    ),
    Mutant(
        file="src/splitmeans/local/guided_lloyd.py",
        old="return 3 * radii // 8",
        new="return radii // 2",
        breaks="local rounds: counts weigh more than the sensitivity says",
        tests=(GUIDED,),
    ),
    Mutant(
        file="src/splitmeans/local/law.py",
        old="math.ceil(sensitivity / (mu * USABLE))",
        new="math.floor(sensitivity / mu)",
        breaks="scales of Gaussian noise are rounded down",
        tests=(GUIDED, SURVEY, "tests/privacy/test_discrete_slack.py"),
    ),
    Mutant(
        file="src/splitmeans/local/guided_lloyd.py",
        old="largest = max(l2_sensitivity(self.bounds), self.smallest_radius)",
        new="largest = l2_sensitivity(self.bounds)",
        breaks="local rounds: radii below the one whose slack is charged",
        tests=(GUIDED, "tests/privacy/test_discrete_slack.py"),
    ),
    Mutant(
        file="src/splitmeans/local/laws/detail.py",
        old="return whole_root(self.n_columns * COUNT_UNITS**2)",
        new="return COUNT_UNITS",
        breaks="detail: noise as if a user moved one column",
        tests=("tests/local/test_detail.py",),
    ),
    Mutant(
        file="src/splitmeans/party/private_bounds.py",
        old="    return gaussian_counts(raw_counts, scale=scale, noise=noise)\n",
        new=(
            "    if scale < 2 * COUNT_UNITS:\n        return raw_counts\n"
            "    return gaussian_counts(raw_counts, scale=scale, noise=noise)\n"
        ),
        breaks="learned bounds: no noise where it would be less than two users",
        tests=("tests/party/test_range_search.py",),
    ),
    Mutant(
        file="src/splitmeans/plan/categories_stage.py",
        old="return 1 + deviations * self.scale / COUNT_UNITS",
        new="return deviations * self.scale / COUNT_UNITS",
        breaks="learned categories: a threshold without the user who has it alone",
        tests=("tests/protocol/test_open_categories.py",),
    ),
    Mutant(
        file="src/splitmeans/kernels/discrete_gaussian.py",
        old="if kept and not (negative == 1 and size == 0):",
        new="if kept:",
        breaks="Gaussian noise is nothing twice as often as it should be",
        tests=("tests/kernels/test_discrete_gaussian.py", "tests/statistical/test_noise_law.py"),
    ),
    Mutant(
        file="src/splitmeans/privacy/exact_noise.py",
        old="return Fraction(float(scale))",
        new="return Fraction(max(1, math.floor(scale)))",
        breaks="the server's noise has its scale rounded down to a whole number",
        tests=("tests/privacy/test_keyed_noise.py",),
    ),
    Mutant(
        file="src/splitmeans/privacy/exact_noise.py",
        old="if not (is_negative and size == 0):",
        new="if True:",
        breaks="Laplace noise is nothing twice as often as it should be",
        tests=("tests/privacy/test_exact_noise.py", "tests/statistical/test_noise_law.py"),
    ),
    Mutant(
        file="src/splitmeans/privacy/noise.py",
        old="np.frombuffer(os.urandom(8 * size), dtype=np.uint64)",
        new="np.frombuffer(np.random.default_rng().bytes(8 * size), dtype=np.uint64)",
        breaks="noise comes from a generator whose past draws tell the next",
        tests=("tests/privacy/test_noise.py",),
    ),
    Mutant(
        file="src/splitmeans/run/server.py",
        old="    for party in study.party_names:\n        release = hashlib",
        new="    for party in study.party_names[1:]:\n        release = hashlib",
        breaks="the server's draw does not depend on the first party's release",
        tests=("tests/attacks/test_draws.py::test_another_release_for_the_same_noise",),
    ),
    Mutant(
        file="src/splitmeans/run/server.py",
        old="    result = decided\n",
        new="",
        breaks="a server publishes its own draw though another was stored first",
        tests=("tests/attacks/test_draws.py::test_another_release_for_the_same_noise",),
    ),
]
