"""What the server gets from sketch registers, with and without a user, scored by likelihood.

The functions run the encoder of the cell sketch, or the paper's sketch, on two neighbouring inputs,
with fresh keys for every trial.
"""

import numpy as np
import pyarrow as pa

from audits.case import Scores
from audits.published_gap import SharedKeys
from audits.rare_rows import coincidence_trials
from splitmeans._types import FloatArray, RegisterArray
from splitmeans.kernels.registers import user_registers
from splitmeans.kernels.row_numbers import RowNumbers
from splitmeans.membership.sketch.encode import encode as encode_cells
from splitmeans.membership.sketch.law import SketchLaw
from splitmeans.membership.sketch.registers import RegisterLaw
from splitmeans.paper.dpfm import SketchParameters, dpfm
from splitmeans.privacy.noise import NoiseSource
from splitmeans.privacy.register_law import register_pmfs
from splitmeans.table.walk.memory import MemoryUsers

# Trials that one call of an encoder makes, each in a cluster of its own.
_AT_ONCE = 200
RUN_KEY_WORDS = 4


def fresh_key(noise: NoiseSource) -> bytes:
    """Return a run key for one trial."""
    return noise.words(RUN_KEY_WORDS).tobytes()


def published_both_parties(
    case: SharedKeys, trials: int, noise: NoiseSource, *, least: int
) -> Scores:
    """Rows with two equal registers >= `least`, from `paper.dpfm` itself: slow, and the real thing.

    Both parties hash a user with the same key; cluster i of both is trial i.
    """
    law = case.sketch

    def scores(present: bool) -> FloatArray:
        parts = []
        for start in range(0, trials, _AT_ONCE):
            size = min(_AT_ONCE, trials - start)
            key = noise.words(2).tobytes()
            first, second = (_published(law, size, present, noise=noise, key=key) for _ in range(2))
            parts.append(((first == second) & (first >= least)).sum(axis=0))
        return np.concatenate(parts).astype(np.float64)

    return Scores(with_user=scores(True), without=scores(False))


def published_rare_rows(case: SharedKeys, trials: int, noise: NoiseSource, *, least: int) -> Scores:
    """The same from the registers' exact law: fast enough for millions of trials."""
    seeds = noise.words(2)
    with_user, without = (
        coincidence_trials(
            case, least=least, trials=trials, with_user=there, rng=np.random.default_rng(seed)
        )
        for there, seed in zip((True, False), seeds.tolist(), strict=True)
    )
    return Scores(with_user=with_user, without=without)


def sketch(law: SketchLaw, trials: int, noise: NoiseSource) -> Scores:
    """The registers of two parties; each cluster of party 0 is a trial with a user of its own.

    Party 1 has one cluster, so a register of party 0 is the maximum of one cell, as in the proof's
    worst case, and party 1's register is a function of party 0's. The score is the log likelihood
    ratio.
    """
    values, without, with_user = register_pmfs(law.event)
    ratio = np.log(with_user) - np.log(without)

    def scores(present: bool) -> FloatArray:
        parts = []
        labels = np.arange(_AT_ONCE if present else 0, dtype=np.int32)
        users = MemoryUsers(ids=pa.array(labels).cast(pa.large_string()), labels=labels)
        for _ in range(-(-trials // _AT_ONCE)):
            message = encode_cells(
                law,
                users=users,
                position=0,
                groups=((0, 1),),
                n_local_clusters=(_AT_ONCE, 1),
                run_key=fresh_key(noise),
            )
            parts.append(_row_ratios(ratio, message.registers, lowest=int(values[0])))
        return np.concatenate(parts)[:trials]

    return Scores(with_user=scores(True), without=scores(False))


def no_phantoms(law: RegisterLaw, trials: int, noise: NoiseSource, *, repetitions: int) -> Scores:
    """A broken sketch without phantoms and without a floor: an empty cluster stays at zero."""
    count_table = law.count_table(repetitions=repetitions, floor=0)

    def scores(users: int) -> FloatArray:
        registers = user_registers(
            noise.words(2 * users).reshape(users, 2),
            np.arange(users, dtype=np.int32),
            n_clusters=trials,
            repetitions=repetitions,
            floor=0,
            count_table=count_table,
            excess_table=law.value_table,
        )
        return np.asarray(registers.sum(axis=0, dtype=np.float64))

    return Scores(with_user=scores(trials), without=scores(0))


def _published(
    parameters: SketchParameters,
    clusters: int,
    present: bool,
    *,
    noise: NoiseSource,
    key: bytes,
) -> RegisterArray:
    """Return a party's sketches, shape (M, clusters), with one user in every cluster or none."""
    users = RowNumbers(start=0, end=clusters).tags(key)
    if not present:
        users = users[:0]
    columns = [dpfm(users[at : at + 1], parameters, noise=noise) for at in range(clusters)]
    return np.column_stack(columns)


def _row_ratios(ratio: FloatArray, registers: RegisterArray, *, lowest: int) -> FloatArray:
    """Return for each cluster the sum over rows of the log likelihood ratio of its register."""
    places = np.clip(registers.astype(np.int64) - lowest, 0, len(ratio) - 1)
    return np.asarray(ratio[places].sum(axis=0))
