"""What the published sketch really costs when parties share hash keys.

docs/concepts/published-argument.md tells the story; here are its calculations.

The paper adds up what each party's sketch costs alone. But a user puts the same hash value into the
sketches of all parties, so the registers of the S clusters that the user is in are dependent, and
equal large registers betray a user who is alone in the combination of clusters. Here is the joint
law of those registers and what it costs over M rows. All figures are lower bounds on the true cost.

A row: party l's register is A_l = max(P_l, C), raised to the floor. P_l is the largest of n values
of its own (phantoms, and users who share no other of these clusters), with F^n =: G; C the largest
of the c values of users in all S clusters. Let m be the least of the A_l and j how many equal m.
Those above m got their value from their own P_l, which has the same law with and without the user;
so the likelihood ratio depends on (m, j) alone, which has the law

    P(m, j) = binomial(S, j) (1 - G(m))^(S-j) [f_c(m) G(m)^j + F^c(m-1) g(m)^j],

where f_c and g are the steps of F^c and G at m. A user who joins makes c one larger.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from audits.loss import GRID_POINTS, compose_rows
from splitmeans import _validate
from splitmeans._types import FloatArray, IntArray
from splitmeans.errors import ParameterError
from splitmeans.paper.dpfm import SketchParameters
from splitmeans.privacy.register_law import log_cdf, log_cdf_step

# What the paper grants the memberships of all parties together at a total of (1, 5e-5).
CLAIMED_EPSILON = 0.49
CLAIMED_DELTA = 5e-5
REPETITIONS = 4096

# Registers above the value that all hash values of a row exceed with this probability count as it.
_TOP = 2.0**-70


@dataclass(frozen=True, kw_only=True)
class SharedKeys:
    """Clusters of S parties that one user is in, sketched under shared keys as published.

    Attributes:
        n_parties: S.
        gamma: Parameter of the register law.
        others: Users in each of the S clusters who are in no other of them.
        in_cell: Users in all S clusters, beside the one who joins or leaves.
        epsilon: What is claimed of all parties together; each party gets an equal share.
        delta: The same.
        repetitions: M.
    """

    n_parties: int = 2
    gamma: float = 1.0
    others: int = 0
    in_cell: int = 0
    epsilon: float = CLAIMED_EPSILON
    delta: float = CLAIMED_DELTA
    repetitions: int = REPETITIONS

    def __post_init__(self) -> None:
        _validate.at_least(1, n_parties=self.n_parties)
        _validate.at_least(0, others=self.others, in_cell=self.in_cell)

    @property
    def sketch(self) -> SketchParameters:
        """One party's sketch, with the paper's number of phantoms and floor."""
        return SketchParameters(
            epsilon_2=self.epsilon / self.n_parties,
            delta_2=self.delta / self.n_parties,
            gamma=self.gamma,
            repetitions=self.repetitions,
        )

    @property
    def row_laws(self) -> tuple[FloatArray, FloatArray]:
        """The law of (m, j) in one row, with and without the user, each of shape (values x S,)."""
        sketch = self.sketch
        own = sketch.phantoms + self.others
        with_user, without = (
            shared_minimum_law(
                own=own,
                shared=self.in_cell + user,
                top=register_top(own + self.in_cell + 1, gamma=self.gamma, floor=sketch.floor),
                n_parties=self.n_parties,
                gamma=self.gamma,
                floor=sketch.floor,
            ).reshape(-1)
            for user in (1, 0)
        )
        return with_user, without


@dataclass(frozen=True, kw_only=True)
class Gap:
    """The true cost of a case, from below: with against without the user, and the reverse."""

    case: SharedKeys
    epsilon: float
    delta: float
    reverse_epsilon: float
    reverse_delta: float

    @property
    def violates(self) -> bool:
        """Whether the cost is shown to be above the claim; False does not show that it is not."""
        return max(self.delta, self.reverse_delta) > self.case.delta


@dataclass(frozen=True, kw_only=True)
class Coincidence:
    """The event that some row has both registers equal and >= `least`, for two parties."""

    least: int
    with_user: float
    without_user: float

    def excess(self, epsilon: float) -> float:
        """Return P(with) - e^epsilon P(without): delta is at least this at that epsilon."""
        return self.with_user - math.exp(epsilon) * self.without_user


def register_top(count: int, *, gamma: float, floor: int) -> int:
    """Return a value that the largest of `count` hash values exceeds with probability 2^-70."""
    top = math.ceil((math.log(count) - math.log(_TOP)) / math.log1p(gamma))
    return max(top, floor + 1, 2)


def shared_minimum_law(
    *, own: int, shared: int, n_parties: int, gamma: float, floor: int, top: int
) -> FloatArray:
    """Return P(m, j) of the module's text, shape (values from the floor to `top`, S).

    `own` is n, at least 1; `shared` is c; `top` stands for all values from there on. All terms are
    positive, so nothing cancels.
    """
    values = np.arange(max(floor, 1), top + 1)  # a register of one value or more is at least 1
    at, step, _ = _maximum(own, values, gamma=gamma)
    _, shared_step, shared_before = _maximum(shared, values, gamma=gamma)
    above = -np.expm1(own * log_cdf(values, gamma=gamma))
    above[-1] = 0.0
    columns = [
        math.comb(n_parties, j)
        * above ** (n_parties - j)
        * (shared_step * at**j + shared_before * step**j)
        for j in range(1, n_parties + 1)
    ]
    return np.stack(columns, axis=1)


def true_cost(case: SharedKeys, *, points: int = GRID_POINTS) -> Gap:
    """Return what the registers of a case cost at the claimed delta and at the claimed epsilon."""
    with_user, without = case.row_laws
    forward = compose_rows(with_user, without, rows=case.repetitions, points=points)
    reverse = compose_rows(without, with_user, rows=case.repetitions, points=points)
    return Gap(
        case=case,
        epsilon=forward.epsilon(case.delta),
        delta=forward.delta(case.epsilon),
        reverse_epsilon=reverse.epsilon(case.delta),
        reverse_delta=reverse.delta(case.epsilon),
    )


def check_two_empty(case: SharedKeys) -> None:
    """Refuse a case that is not two parties whose clusters hold nobody but the user."""
    if case.n_parties != 2 or case.others or case.in_cell:
        raise ParameterError("case must be two parties with empty clusters")


def coincidence(case: SharedKeys, *, least: int) -> Coincidence:
    """Return the exact probabilities of two equal registers >= `least` in some row.

    For two parties whose clusters hold nobody but the user; `least` must be above the floor.
    """
    check_two_empty(case)
    sketch = case.sketch
    _validate.at_least(sketch.floor + 1, least=least)
    # Column j = 2 of the law: both registers equal, at each value from the floor up.
    per_row = [
        float(law.reshape(-1, 2)[least - max(sketch.floor, 1) :, 1].sum()) for law in case.row_laws
    ]
    there, away = (-math.expm1(case.repetitions * math.log1p(-share)) for share in per_row)
    return Coincidence(least=least, with_user=there, without_user=away)


def table_cases() -> Iterator[tuple[str, SharedKeys]]:
    """Yield the cases of docs/concepts/published-argument.md, with a name for each."""
    for gamma in (1.0, 0.5, 0.1, 0.02):
        yield f"S=2, gamma {gamma:g}, empty clusters", SharedKeys(gamma=gamma)
    for gamma in (1.0, 0.1):
        name = f"S=2, gamma {gamma:g}, 4000 others in each cluster"
        yield name, SharedKeys(gamma=gamma, others=4000)
    for gamma in (1.0, 0.1):
        yield f"S=2, gamma {gamma:g}, 100 others in the cell", SharedKeys(gamma=gamma, in_cell=100)
    for n_parties in (3, 4, 8):
        name = f"S={n_parties}, gamma 1, empty clusters"
        yield name, SharedKeys(n_parties=n_parties)


def _maximum(
    count: int, values: IntArray, *, gamma: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return P(max <= v), P(max = v) and P(max < v) of `count` values, floored and topped.

    The first value, the floor, takes all below it; the last takes all above it. The maximum of no
    values is below everything.
    """
    if count == 0:
        return np.ones(values.size), np.zeros(values.size), np.ones(values.size)
    at = np.exp(count * log_cdf(values, gamma=gamma))
    step = at * -np.expm1(-count * log_cdf_step(values, gamma=gamma))
    before = np.append(0.0, at[:-1])
    step[0] = at[0]
    at[-1] = 1.0
    step[-1] = -math.expm1(count * log_cdf(values[-2:-1], gamma=gamma)[0])
    return at, step, before
