"""`result explore --model`, `label` and `audience` by other models, `similar`: prints, refusals."""

import csv
import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from tests.cli.test_result_commands import BANK, run

__all__ = ["run"]

# The users of the small result: 600 low incomes in the north, 300 high ones in the south.
MANY = pa.table(
    {
        "customer": [f"{at:04d}" for at in range(40)],
        "income": [2000.0] * 30 + [6000.0] * 10,
        "region": ["north"] * 30 + ["south"] * 10,
    }
)


@pytest.mark.parametrize(
    ("command", "example"),
    [
        (("result", "explore"), "splitmeans result explore my-result --model tree"),
        (("result", "similar"), "splitmeans result similar my-result --party bank"),
        (("result", "audience"), "--segments A,C --at-least 0.7 -o campaign.csv"),
    ],
    ids=" ".join,
)
def test_help_has_an_example(run, command, example):
    done = run(*command, "--help")
    assert done.code == 0
    assert example in " ".join(done.out.split())


def test_the_tree_grows_from_the_published_segments(run):
    shown = run("result", "explore", "result", "--model", "tree")
    assert shown.code == 0, shown.err
    lines = [line.split() for line in shown.out.splitlines()]
    assert lines[0][-1] == "published"
    assert [line[:3] for line in lines[2:5]] == [
        ["all", "900", shown.out.splitlines()[2].split()[2]],
        ["├─", "A", "600"],
        ["│", "├─", "A1"],
    ]
    found = json.loads(run("result", "explore", "result", "--model", "tree", "--json").out)
    assert [one["segment"] for one in found["branches"]] == ["all", "A", "B", "A1", "A2"]
    assert [one["size"] for one in found["branches"]] == [900, 600, 300, 400, 200]
    assert found["branches"][3]["parent"] == "A"
    assert found["branches"][1]["children"] == ["A1", "A2"]
    assert (found["given"], found["most"]) == (2, 3)
    low, high = found["branches"][1]["size_interval"]
    assert low < 600 < high
    assert found["losses"]["3"] == pytest.approx(0)


def test_a_cut_of_the_tree(run):
    shown = run("result", "explore", "result", "--model", "tree", "--k", "3")
    assert "3 segments of the tree, found on the published grid" in shown.out
    assert "A1" in shown.out
    found = json.loads(
        run("result", "explore", "result", "--model", "tree", "--k", "3", "--json").out
    )
    assert found["model"] == "tree"
    assert [one["segment"] for one in found["segments"]] == ["A1", "B", "A2"]
    refused = run("result", "explore", "result", "--model", "tree", "--k", "4")
    assert refused.code != 0
    assert "k must be at most 3" in refused.err


def test_medians_and_mixtures_for_each_k(run):
    medians = json.loads(run("result", "explore", "result", "--model", "medians", "--json").out)
    assert [row["k"] for row in medians["ks"]] == [2, 3]
    assert medians["ks"][1]["distance"] == pytest.approx(0)
    assert "segments around medians" in run("result", "explore", "result", "--model", "medians").out
    shown = run("result", "explore", "result", "--model", "mixture", "--ks", "2")
    assert "BIC" in shown.out
    assert "suggested" in shown.out
    one = json.loads(
        run("result", "explore", "result", "--model", "mixture", "--k", "2", "--json").out
    )
    assert one["model"] == "mixture"
    assert [part["size_interval"] for part in one["segments"]] == [None, None]
    assert "have no intervals" in one["intervals"]
    table = run("result", "explore", "result", "--model", "mixture", "--k", "2").out
    income = next(line for line in table.splitlines() if line.startswith("bank: income"))
    assert "±" in income


def test_unknown_models_are_refused(run):
    for command in (("explore", "result"), ("label", "result", "--party", "bank")):
        more = ("--data", "bank.parquet", "-o", "out.csv") if command[0] == "label" else ()
        refused = run("result", *command, *more, "--model", "forest")
        assert refused.code != 0
        assert "model must be one of 'means', 'medians', 'mixture', 'tree'" in refused.err


@pytest.mark.parametrize("model", ["medians", "mixture", "tree"])
def test_rows_are_labelled_by_every_model(run, model):
    pq.write_table(BANK, "bank.parquet")
    done = run(
        *("result", "label", "result", "--party", "bank", "--data", "bank.parquet"),
        *("--model", model, "--k", "3", "-o", "labels.csv"),
    )
    assert done.code == 0, done.err
    rows = list(csv.DictReader(io.StringIO(Path("labels.csv").read_text())))
    segments = [name for name in rows[0] if name.startswith("segment ")]
    assert len(segments) == 3
    for row in rows:
        assert sum(float(row[name]) for name in segments) == pytest.approx(1)
    # Of low incomes two thirds are young: the bank cannot tell which.
    assert float(rows[0]["probability"]) == pytest.approx(2 / 3, abs=0.01)
    assert float(rows[2]["probability"]) == pytest.approx(1, abs=0.01)


def test_an_audience_is_written_and_summed_up(run):
    pq.write_table(MANY, "bank.parquet")
    common = ("--party", "bank", "--data", "bank.parquet", "-o", "list.csv")
    done = run("result", "audience", "result", "--segments", "B", "--at-least", "0.7", *common)
    assert done.code == 0, done.err
    assert done.out.strip() == "list.csv"
    assert "10 of 40 users; about 10 of them (100%)" in done.err
    text = pyarrow.csv.ConvertOptions(column_types={"customer": pa.string()})
    found = pyarrow.csv.read_csv("list.csv", convert_options=text)
    assert found.column("customer").to_pylist() == [f"{at:04d}" for at in range(30, 40)]
    assert set(found.column("segment").to_pylist()) == {"B"}
    parts = run("result", "audience", "result", "--segments", "A1", "--model", "tree", *common)
    assert parts.code != 0
    assert "segments must be some of A, B, got 'A1'" in parts.err
    cut = ("--model", "tree", "--k", "3", "--segments", "A1", "--at-least", "0.6")
    parts = run("result", "audience", "result", *cut, *common)
    assert "30 of 40 users; about 20 of them (67%)" in parts.err
    wrong = run("result", "audience", "result", "--segments", "B", "--at-least", "7", *common)
    assert "at_least must be above 0 and at most 1" in wrong.err


def test_similar_ranks_everybody_else(run):
    pq.write_table(MANY, "bank.parquet")
    seed = "customer\n" + "\n".join(f"{at:04d}" for at in range(30, 35)) + "\n"
    Path("seed.csv").write_text(seed)
    common = ("--party", "bank", "--data", "bank.parquet", "-o", "like.csv")
    done = run("result", "similar", "result", "--seed", "seed.csv", "--most", "7", *common)
    assert done.code == 0, done.err
    assert "7 users, the likest to 5 seeds first" in done.err
    rows = list(csv.DictReader(io.StringIO(Path("like.csv").read_text())))
    assert [int(row["customer"]) for row in rows[:5]] == list(range(35, 40))
    assert float(rows[0]["lift"]) > 1 > float(rows[-1]["lift"])
    few = run("result", "similar", "result", "--seed", "nowhere.csv", *common)
    assert few.code != 0
    assert "nowhere.csv: the seed cannot be read" in few.err
