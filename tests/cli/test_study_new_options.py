"""`study new --scaling` and `--detail`: what they put into the study, and what is refused."""

from splitmeans.study import DetailOptions, Study
from tests.cli.test_result_commands import run

__all__ = ["run"]

PARTIES = ("--party", "bank", "--party", "shop", "--column", "bank:x:0:1", "--column", "shop:y:0:1")


def test_scaling_and_detail_are_in_the_study(run, tmp_path):
    done = run("study", "new", *PARTIES, "--scaling", "equal", "--detail")
    assert done.code == 0, done.err
    study = Study.read(tmp_path / "study.toml")
    assert study.scaling == "equal"
    assert study.detail == DetailOptions()
    assert run("study", "new", *PARTIES, "-o", "plain.toml").code == 0
    plain = Study.read(tmp_path / "plain.toml")
    assert (plain.scaling, plain.detail) == (None, None)


def test_unknown_scalings_and_forgotten_parties_are_refused(run):
    done = run("study", "new", *PARTIES, "--scaling", "round")
    assert done.code != 0
    assert "scaling" in done.err
    assert "--party is missing" in run("study", "new", "--detail").err
