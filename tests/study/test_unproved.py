"""Methods without a proved bound: refused unless allowed by name, and said first everywhere."""

import itertools
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from splitmeans import Result, VerticalKMeans
from splitmeans.cli import app
from splitmeans.errors import ParameterError
from splitmeans.plan.statement import PrivacyReport
from splitmeans.study import Study
from splitmeans.study.methods import ACCOUNTING_METHODS, LOCALS, MEMBERSHIPS, local_facts
from tests.scene import keyed_study, make_study

# Every combination that has a meaning.
COMBINATIONS = [
    (membership, local, accounting)
    for membership, local, accounting in itertools.product(
        MEMBERSHIPS, ("auto", *LOCALS), ACCOUNTING_METHODS
    )
    if accounting in MEMBERSHIPS[membership].accountings
    and accounting in local_facts(local, membership=membership, accounting=accounting).accountings
]


@pytest.mark.parametrize(("membership", "local", "accounting"), COMBINATIONS)
def test_a_study_is_refused_if_and_only_if_its_total_is_no_proved_bound(
    membership: str, local: str, accounting: str
) -> None:
    options = {"membership": membership, "local": local, "accounting": accounting}
    allowed = make_study(**options, allow_unproved=True)
    report = PrivacyReport.for_study(allowed)
    server_bound = report.views[0].bounds[0][1]
    is_bounded = server_bound is not None and np.isfinite(server_bound.epsilon)
    assert report.proved == is_bounded
    if is_bounded:
        # The flag has no effect on it, not even on the hash.
        assert make_study(**options, allow_unproved=False) == allowed
        assert report.warning is None
        assert report.statement().startswith("Privacy of study")
        return
    for left_out in (None, False):
        with pytest.raises(ParameterError, match="no privacy bound is proved for") as refusal:
            make_study(**options, allow_unproved=left_out)
        text = str(refusal.value)
        assert f"membership={membership!r} (" in text or f"local={local!r} (" in text
        assert "membership='decoy'" in text
        assert "allow_unproved=True" in text
    first = report.statement().splitlines()[0]
    assert first == report.warning
    assert first.startswith("NOT PROVED: " if np.isfinite(report.epsilon) else "NOT PRIVATE: ")
    assert repr(report) == f"<PrivacyReport {first}>"
    assert next(iter(report.to_mapping().items())) == ("warning", first)
    assert Study.from_toml(allowed.to_toml()) == allowed


@pytest.mark.parametrize(
    "options",
    [
        {"membership": "exact"},
        {"membership": "ldp"},
        {"local": "plain"},
        {"membership": "sketch-paper", "accounting": "paper"},
    ],
)
@pytest.mark.filterwarnings("ignore:membership='sketch-paper'")
def test_an_unproved_fit_is_allowed_by_name_and_says_so_first_everywhere(
    options: dict[str, str], tmp_path
) -> None:
    rng = np.random.default_rng(0)
    blocks = [rng.uniform(0, 1, (200, 2)) for _ in range(2)]
    model = VerticalKMeans(2, epsilon=8.0, bounds=(0, 1), random_state=0, **options)
    with pytest.raises(ParameterError, match="set allow_unproved=True"):
        model.fit(blocks)
    model.set_params(allow_unproved=True).fit(blocks)
    warning = model.privacy_.warning
    assert warning is not None
    model.save(tmp_path / "result")
    assert (tmp_path / "result" / "statement.txt").read_text().startswith(warning)
    certificate = json.loads((tmp_path / "result" / "certificate.json").read_text())
    assert next(iter(certificate.items())) == ("warning", warning)
    show = ["result", "show", str(tmp_path / "result")]
    assert CliRunner().invoke(app, show).stdout.startswith(warning)
    as_json = json.loads(CliRunner().invoke(app, [*show, "--json"]).stdout)
    assert next(iter(as_json.items())) == ("warning", warning)
    page = model.report().html
    result = Result.read(tmp_path / "result")
    for text in (page, model._repr_html_(), result._repr_html_(), model.privacy_._repr_html_()):
        body = text[max(text.find("<body"), 0) :]
        before = body[: body.index(warning.partition(":")[0])]
        for figure in ("epsilon ", "<h1", "<table", "Privacy of", "Result of"):
            assert figure not in before


def test_the_flag_is_true_or_false() -> None:
    with pytest.raises(ParameterError, match="allow_unproved must be true or false, got 'yes'"):
        make_study(allow_unproved="yes")


def test_a_study_with_keys_follows_the_same_rule() -> None:
    with pytest.raises(ParameterError, match="no privacy bound is proved"):
        keyed_study(membership="exact", allow_unproved=False)
