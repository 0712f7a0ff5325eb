"""A result small enough to check by hand: two parties, three cells with users, two segments.

A bank knows income (0 to 8,000) and region, an insurer age (18 to 90); each has two local clusters.

    cell (bank, insurer)   income  north  south   age   users
    (0, 0)                  2,000      1      0    36     400
    (0, 1)                  2,000      1      0    72     200
    (1, 0)                  6,000      0      1    36       0
    (1, 1)                  6,000      0      1    72     300

Every cell has one pseudo-user, at its local centres. The published segments are A, the mean of the
first two cells (age 48) with 600 users, and B, the cell (1, 1) with 300. Of users 50 were
counted at the bank only, and 30 at the insurer only.
"""

from pathlib import Path

import numpy as np

from splitmeans.plan.plan import Plan
from splitmeans.plan.settle import plan_for
from splitmeans.result.write import write_result
from splitmeans.study import Budget, Column, PartySpec, Study
from splitmeans.study.features import bounds_of, features_of
from splitmeans.study.id_rules import AS_IS
from splitmeans.synopsis.presence_counts import presence_length
from splitmeans.wire.messages import PublishedResult

GRID = 2**20


def small_study(**changes: object) -> Study:
    settings = {
        "name": "bank and insurer",
        "parties": (
            PartySpec(
                name="bank",
                columns=(
                    Column(name="income", low=0, high=8000),
                    Column(name="region", categories=("north", "south")),
                ),
                id_column="customer",
            ),
            PartySpec(name="insurer", columns=(Column(name="age", low=18, high=90),)),
        ),
        "n_clusters": 2,
        "n_local_clusters": 2,
        "budget": Budget(epsilon=1.0, delta=1e-5),
        "expected_users": 1000,
        "ids": AS_IS,
    }
    return Study(**(settings | changes))


def small_message(plan: Plan) -> PublishedResult:
    category = int(bounds_of(features_of(plan.study.parties[0]))[1])
    bank = [[-GRID // 2, category, -category], [GRID // 2, -category, category]]
    insurer = [[-GRID // 2], [GRID // 2]]
    on_grid = np.array([[*bank[a], *insurer[b]] for a in (0, 1) for b in (0, 1)], dtype=np.int32)
    # A number's grid integer, a category's level, a number's grid integer.
    codes = np.stack([on_grid[:, 0], on_grid[:, 2] > 0, on_grid[:, 3]], axis=1).astype(np.int32)
    nodes = on_grid / GRID
    # A plan may have more clusters: all at zero, without users.
    local = [
        np.concatenate([np.ravel(own), np.zeros((width - len(own)) * len(own[0]))])
        for own, width in zip((bank, insurer), plan.n_local_clusters, strict=True)
    ]
    weights = np.array([400.0, 200.0, 0.0, 300.0])
    return PublishedResult(
        fingerprint=plan.fingerprint,
        local_centres=np.concatenate(local).astype(np.int64),
        labels=np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=np.uint8),
        weights=weights,
        nodes=codes[: 4 if plan.study.n_points else 0],
        centres=np.stack([weights[:2] @ nodes[:2] / 600, nodes[3]]),
        sizes=np.array([600.0, 300.0]),
        published_at="2026-01-31T12:00:00Z",
        signature=b"",
        presence=np.array([900, 50, 30][: presence_length(plan)]),
    )


def write_message(
    folder: Path, plan: Plan, message: PublishedResult, *, secure_noise: bool = True
) -> Path:
    write_result(
        folder,
        plan,
        message,
        run="1",
        participant="server",
        transcript=[("taken", "study/run/partyrelease.bank.server", "ab" * 32)],
        secure_noise=secure_noise,
        written_at="2026-01-31T12:05:00Z",
    )
    return folder


def write_small_result(
    folder: Path, *, study: Study | None = None, secure_noise: bool = True
) -> Path:
    study = study or small_study()
    plan = plan_for(study, users=900)
    return write_message(folder, plan, small_message(plan), secure_noise=secure_noise)
