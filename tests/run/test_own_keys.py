"""Keys that come and go: which one a study gets, and what a revoked one is told."""

from dataclasses import replace
from pathlib import Path

import pytest

from splitmeans.cli.keys import new_series_words, rekeyed
from splitmeans.errors import ParameterError
from splitmeans.run import own_keys
from splitmeans.run.own_keys import check_not_revoked, key_for, refuse_key
from splitmeans.study.renewal import Renewal
from splitmeans.wire.identity import Identity
from splitmeans.wire.key_change import read_revocation, revocation_text
from tests.scene import KEYS, keyed_study

STUDY = keyed_study()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    KEYS["bank"].save(tmp_path / "key.json")
    return tmp_path


def renewal_of(home: Path) -> Path:
    own_keys.renew(home / "key.json", None)
    return max((home / "keys").glob("*.renewal"), key=lambda path: path.stat().st_mtime_ns)


def test_each_study_gets_its_key(home: Path) -> None:
    first = rekeyed(STUDY, [renewal_of(home)], home)
    second = rekeyed(first, [renewal_of(home)], home)
    assert len({STUDY.hash, first.hash, second.hash}) == 3
    for study in (STUDY, first, second):
        found = Identity.load(key_for(home / "key.json", study, "bank"))
        assert found.public.to_text() == study.public_keys["bank"]
    both = sorted((home / "keys").glob("*.renewal"), key=lambda path: path.stat().st_mtime_ns)
    assert rekeyed(STUDY, both, home).hash == second.hash
    with pytest.raises(ParameterError, match="which nobody has in study 'small'"):
        rekeyed(STUDY, both[::-1], home)


def test_a_revoked_key_is_refused_with_the_reason(home: Path) -> None:
    check_not_revoked(home, STUDY)
    word = renewal_of(home)
    text = revocation_text(KEYS["bank"], reason="laptop stolen", time="2026-05-03T10:00:00")
    refuse_key(home, read_revocation(text, where="x"), text)
    with pytest.raises(ParameterError, match=r"key of 'bank' in .*by its owner on 2026-05-03: lap"):
        check_not_revoked(home, STUDY)
    with pytest.raises(ParameterError, match=r"old key was revoked \(laptop stolen\)"):
        rekeyed(STUDY, [word], home)


def test_a_key_that_this_home_refuses_by_itself(home: Path) -> None:
    said, text = own_keys.local_revocation(KEYS["shop"].public.digest.hex(), reason="told by phone")
    refuse_key(home, said, text)
    with pytest.raises(ParameterError, match=r"key of 'shop' .*by this home on .*: told by phone"):
        check_not_revoked(home, STUDY)


def test_a_damaged_word_about_a_key_refuses_it(home: Path) -> None:
    (home / "keys").mkdir()
    path = home / "keys" / f"{KEYS['shop'].public.digest.hex()[:32]}.revoked"
    path.write_text("half")
    with pytest.raises(ParameterError, match="must have format 'splitmeans key revocation 1'"):
        check_not_revoked(home, STUDY)


def test_a_new_key_is_another_series() -> None:
    assert new_series_words(STUDY) is None
    words = new_series_words(replace(STUDY, renewal=Renewal(runs=4)))
    assert words is not None
    assert "charged again" in words
