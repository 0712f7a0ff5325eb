"""Who may enter a real run: a table whose users have ids."""

import numpy as np
import pytest

from splitmeans.errors import PrivacyError
from splitmeans.party.node import join
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.study import Budget, Column, PartySpec, Study
from splitmeans.table.prepare import prepare_table

PARTIES = tuple(
    PartySpec(name=name, columns=(Column(name="x", low=-1, high=1),)) for name in ("bank", "shop")
)
STUDY = Study(
    name="ids",
    parties=PARTIES,
    n_clusters=2,
    budget=Budget(epsilon=1.0, delta=1e-6),
    expected_users=50,
)
ROWS = np.linspace(-1, 1, 50)[:, np.newaxis]


def test_row_numbers_whose_tags_are_no_secret_are_for_simulations_alone() -> None:
    table = prepare_table(PARTIES[0], ROWS, simulated=True)
    with pytest.raises(PrivacyError, match="'bank' has row numbers for ids"):
        join(STUDY, table, noise=InsecureSeededNoise(1))
    join(STUDY, table, noise=InsecureSeededNoise(1), simulated=True)


def test_a_table_with_ids_enters() -> None:
    table = prepare_table(PARTIES[0], ROWS, ids=np.arange(50))
    state, sent = join(STUDY, table, noise=InsecureSeededNoise(1))
    assert state.session.party == "bank"
    assert [one.receiver for one in sent] == ["shop"]
