"""What the server gets from sketch registers, with and without a user, scored by likelihood.

The functions run the encoders of the membership methods on two neighbouring inputs, with fresh keys
for every trial.
"""

import numpy as np
import pyarrow as pa

from audits.case import Scores
from audits.published_gap import SharedKeys
from audits.rare_rows import coincidence_trials
from splitmeans._types import FloatArray, RegisterArray
from splitmeans.kernels.registers import user_registers
from splitmeans.membership.registers.law import RegisterLaw
from splitmeans.membership.sketch.encode import encode as encode_cells
from splitmeans.membership.sketch.law import SketchLaw
from splitmeans.membership.sketch_paper.encode import encode as encode_published
from splitmeans.membership.sketch_paper.law import SketchPaperLaw
from splitmeans.privacy.events import CellSketchEvent
from splitmeans.privacy.noise import NoiseSource
from splitmeans.privacy.register_law import register_pmfs
from splitmeans.table.walk.memory import MemoryUsers

# Trials that one call of an encoder makes, each in a cluster of its own.
_AT_ONCE = 200
RUN_KEY_WORDS = 4


def fresh_key(noise: NoiseSource) -> bytes:
    """Return a run key for one trial."""
    return noise.words(RUN_KEY_WORDS).tobytes()


def one_party_event(law: SketchPaperLaw) -> CellSketchEvent:
    """The exact event of one party's published sketch alone.

    A user changes one register of each row from the law of n_p values to that of n_p + 1.
    """
    return CellSketchEvent(
        repetitions=law.repetitions, gamma=law.gamma, phantoms=law.phantoms, floor=law.floor
    )


def published_one_party(law: SketchPaperLaw, trials: int, noise: NoiseSource) -> Scores:
    """One party's published sketch; each cluster of a call is a trial with a user of its own."""
    values, without, with_user = register_pmfs(one_party_event(law))
    ratio = np.log(with_user) - np.log(without)

    def scores(present: bool) -> FloatArray:
        parts = []
        for start in range(0, trials, _AT_ONCE):
            size = min(_AT_ONCE, trials - start)
            key = noise.words(2).tobytes()
            registers = _published(law, size, present, noise=noise, key=key)
            parts.append(_row_ratios(ratio, registers, lowest=int(values[0])))
        return np.concatenate(parts)

    return Scores(with_user=scores(True), without=scores(False))


def published_both_parties(
    case: SharedKeys, trials: int, noise: NoiseSource, *, least: int
) -> Scores:
    """Rows with two equal registers >= `least`, from the encoder itself: slow, and the real thing.

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
    law: SketchPaperLaw,
    clusters: int,
    present: bool,
    *,
    noise: NoiseSource,
    key: bytes,
) -> RegisterArray:
    """Return a party's registers, shape (M, clusters), with one user in every cluster or none."""
    labels = np.arange(clusters if present else 0, dtype=np.int32)
    ids = pa.array(labels).cast(pa.large_string())
    message = encode_published(
        law,
        users=MemoryUsers(ids=ids, labels=labels),
        key=key,
        n_local_clusters=clusters,
        noise=noise,
    )
    return message.registers


def _row_ratios(ratio: FloatArray, registers: RegisterArray, *, lowest: int) -> FloatArray:
    """Return for each cluster the sum over rows of the log likelihood ratio of its register."""
    places = np.clip(registers.astype(np.int64) - lowest, 0, len(ratio) - 1)
    return np.asarray(ratio[places].sum(axis=0))
