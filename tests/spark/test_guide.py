"""docs/guides/spark.md stays true: it is pasted after the guide that it goes on from."""

import json

import pytest

from tests.docs.blocks import ROOT
from tests.docs.shell import make_folder, paste

GUIDES = ROOT / "docs" / "guides"


@pytest.mark.slow
@pytest.mark.usefixtures("spark")  # skips where Spark cannot run
def test_a_party_runs_from_spark(tmp_path):
    folder = make_folder(tmp_path)
    paste(GUIDES / "two-companies.md", folder)
    shown = paste(GUIDES / "spark.md", folder)
    assert "charged epsilon 1, delta 1e-06 to source 'bank-customers'" in shown
    results = [
        json.loads((folder / f"{who}-result-spark" / "result.json").read_text())
        for who in ("bank", "shop")
    ]
    assert results[0]["result_hash"] == results[1]["result_hash"]
    assert list(folder.glob("splitmeans-*")) == []  # the frozen rows are gone
