"""Bundles verify, and a bundle that anybody changed anywhere does not."""

import dataclasses
import hashlib
import io
import json
import re
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from splitmeans.errors import EvidenceError, JournalError, ParameterError
from splitmeans.evidence import verify
from splitmeans.evidence.bundle import pack, unpack
from splitmeans.evidence.make import make_bundle
from splitmeans.evidence.manifest import MANIFEST, SIGNATURE, Manifest, hashes
from splitmeans.evidence.verify import Pins, verify_bundle
from splitmeans.result.result import Result
from splitmeans.run.journal import Journal
from splitmeans.study import Renewal
from splitmeans.wire.slot import SERVER
from tests.evidence.conftest import IDS, Ran, play
from tests.result.small_result import write_small_result
from tests.scene import KEYS, keyed_study, with_key
from tests.temporary_files import ENDINGS, check_temporary_files

Files = dict[str, bytes]


def signed_again(files: Files, *, by: str = "bank", **changes: str) -> bytes:
    """What somebody with a key makes of files: a manifest that fits them, signed."""
    own = {name: data for name, data in files.items() if name not in (MANIFEST, SIGNATURE)}
    before = Manifest(**json.loads(files[MANIFEST]))
    key = KEYS[by].public.to_text()
    manifest = dataclasses.replace(before, **{"files": hashes(own), "key": key} | changes)
    return pack(
        own | {MANIFEST: manifest.data, SIGNATURE: manifest.signed(KEYS[by].sign)}  # type: ignore
    )


def test_a_bundle_verifies(ran: Ran, bundle: bytes) -> None:
    found = verify_bundle(bundle, Pins(study_hash=ran.study.hash))
    assert found.manifest.participant == "bank"
    assert 0.9 * ran.study.budget.epsilon < found.lower <= found.epsilon <= 4
    verify_bundle(bundle, Pins(key=KEYS["bank"].public.to_text()))


@pytest.mark.parametrize("name", ["shop", SERVER])
def test_everyone_can_make_one(ran: Ran, name: str) -> None:
    found = verify_bundle(ran.bundle(name), Pins(study_hash=ran.study.hash))
    assert found.manifest.participant == name


def test_equal_input_gives_equal_bytes(ran: Ran, bundle: bytes) -> None:
    assert ran.bundle() == bundle


def test_nothing_secret_is_in_it(ran: Ran, bundle: bytes) -> None:
    assert not any(one.encode() in bundle for one in IDS)
    for use in ("sign", "seal"):
        secret = hashlib.sha256(f"{use} of bank".encode()).digest()
        assert not any(form in bundle for form in (secret, secret.hex().encode()))
    assert str(ran.folder).encode() not in bundle


def test_two_archives_do_not_tell_whether_people_came_or_went(
    ran: Ran, bundle: bytes, tmp_path: Path
) -> None:
    """The charge names a record of the people, which is the same in every run on the same table."""
    shutil.copytree(ran.home("bank"), tmp_path / "bank")
    again = play(dataclasses.replace(ran.study, name="again"), tmp_path).bundle()
    lines = [json.loads(unpack(one)["ledger.json"])["lines"] for one in (bundle, again)]
    notes = [one[0]["entry"].get("note") for one in lines]
    assert notes[0] is None or notes[0] != notes[1]
    with Journal.open(tmp_path / "bank") as journal:
        digests = [row for (row,) in journal.connection.execute("SELECT sha256 FROM people")]
    assert len(digests) == 2
    assert len(set(digests)) == 1  # the records are the same, and what leaves the home is not
    assert not any(digest.encode() in one for digest in digests for one in (bundle, again))


def test_runs_of_a_series(tmp_path: Path) -> None:
    """The series is charged once, each run has its slot; epsilon is that of all runs."""
    study = keyed_study(n_local_clusters="auto", renewal=Renewal(runs=3))
    ran = play(study, tmp_path, run="1")
    play(study, tmp_path, run="2")
    for place in ("result-1", "result-2"):
        data = ran.bundle(place=place)
        found = verify_bundle(data, Pins(study_hash=study.hash))
        assert 0.9 * study.budget.epsilon < found.lower <= found.epsilon <= study.budget.epsilon
        lines = json.loads(unpack(data)["ledger.json"])["lines"]
        assert [line["entry"]["kind"] for line in lines] == ["charge", "slot", "cover"]
        assert "All 3 runs of the series together" in unpack(data)["record.txt"].decode()


def test_every_byte_between_files_counts() -> None:
    """Of a small bundle every single byte: headers, names, directory, contents, end."""
    files = {"record.txt": b"what", "ledger.json": b"{}", "result/result.json": b"[1]"}
    data = pack(files)
    assert unpack(data)["ledger.json"] == b"{}"
    original = unpack(data)
    for at in range(len(data)):
        changed = bytearray(data)
        changed[at] ^= 0x01
        try:
            files = unpack(bytes(changed))
        except EvidenceError:
            continue
        assert files != original, f"byte {at} makes no difference"
        pytest.fail(f"byte {at} was changed, and the bundle was read")


def members() -> list[str]:
    result = ("centres.csv", "certificate.json", "result.json", "statement.txt", "study.toml")
    return [
        *("ledger.json", "readme.txt", "record.html", "record.txt", "report.html"),
        *(f"result/{name}" for name in (*result, "synopsis.parquet", "transcript.json")),
        *(MANIFEST, SIGNATURE),
    ]


def test_the_members_are_known(bundle: bytes) -> None:
    assert sorted(unpack(bundle)) == sorted(members())


@pytest.mark.parametrize("name", members())
def test_one_edited_byte_in_any_file(bundle: bytes, name: str) -> None:
    start = bundle.index(unpack(bundle)[name])
    length = len(unpack(bundle)[name])
    for at in {0, length // 2, length - 1}:
        changed = bytearray(bundle)
        changed[start + at] ^= 0x20
        with pytest.raises(EvidenceError):
            verify_bundle(bytes(changed))
        # The same in a zip file that is sound: hashes and signatures have to find it.
        files = unpack(bundle)
        files[name] = bytes(changed[start : start + length])
        with pytest.raises(EvidenceError):
            verify_bundle(pack(files))


@pytest.mark.parametrize("name", members())
def test_a_missing_or_renamed_file(bundle: bytes, name: str) -> None:
    files = unpack(bundle)
    data = files.pop(name)
    with pytest.raises(EvidenceError, match=r"missing|removed"):
        verify_bundle(pack(files))
    with pytest.raises(EvidenceError, match=r"missing|removed|added"):
        verify_bundle(pack(files | {"other.txt": data}))


def test_an_added_file(bundle: bytes) -> None:
    with pytest.raises(EvidenceError, match=r"extra\.txt is not in the manifest"):
        verify_bundle(pack(unpack(bundle) | {"extra.txt": b"hello"}))


def test_two_files_that_changed_places(bundle: bytes) -> None:
    files = unpack(bundle)
    files["record.txt"], files["readme.txt"] = files["readme.txt"], files["record.txt"]
    with pytest.raises(EvidenceError, match="was changed"):
        verify_bundle(pack(files))


@pytest.mark.parametrize("part", [0.0, 0.001, 0.3, 0.9, 0.9999])
def test_a_bundle_that_was_cut_off(bundle: bytes, part: float) -> None:
    with pytest.raises(EvidenceError):
        verify_bundle(bundle[: int(part * len(bundle))])


def test_bytes_before_or_behind(bundle: bytes) -> None:
    for changed in (b"#!/bin/sh\n" + bundle, bundle + b"\0", bundle + bundle):
        with pytest.raises(EvidenceError):
            verify_bundle(changed)


def zipped(files: dict[str, bytes], *, kind: int = zipfile.ZIP_STORED) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", kind) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return data.getvalue()


def test_a_zip_bomb_is_refused_before_it_is_read(
    bundle: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    bomb = zipped(unpack(bundle) | {"record.txt": b"0" * 50_000_000}, kind=zipfile.ZIP_DEFLATED)
    assert len(bomb) < 2_000_000
    monkeypatch.setattr(zipfile.ZipFile, "read", lambda *_: pytest.fail("it was read"))
    with pytest.raises(EvidenceError, match="is compressed"):
        verify_bundle(bomb)
    with pytest.raises(EvidenceError, match="more than 100 files"):
        unpack(zipped({f"a{number}.txt": b"" for number in range(101)}))


@pytest.mark.parametrize(
    "name",
    [
        "../evil.txt",
        "/etc/passwd",
        "result/../../x.txt",
        "a\\..\\b.txt",
        "result/",
        "C:x.txt",
        "é.txt",
    ],
)
def test_names_that_lead_elsewhere(bundle: bytes, name: str) -> None:
    with pytest.raises(EvidenceError, match="a name that no bundle has"):
        verify_bundle(zipped(unpack(bundle) | {name: b"x"}))


def test_one_name_twice(bundle: bytes) -> None:
    data = io.BytesIO(bundle)
    with zipfile.ZipFile(data, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("record.txt", b"another")
    with pytest.raises(EvidenceError):
        verify_bundle(data.getvalue())


@pytest.mark.parametrize("who", ["shop", "mallory", SERVER])
def test_another_signer(bundle: bytes, who: str) -> None:
    with pytest.raises(EvidenceError, match="its key is not that of the result"):
        verify_bundle(signed_again(unpack(bundle), by=who))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("run", "q2"),
        ("study", "another"),
        ("study_hash", "0" * 64),
        ("participant", "shop"),
        ("result_hash", "0" * 64),
        ("published_at", "2020-01-01T00:00:00Z"),
    ],
)
def test_a_manifest_that_says_something_else(bundle: bytes, field: str, value: str) -> None:
    """Signed by the participant itself, who must not lie either."""
    with pytest.raises(EvidenceError, match="is not that of the result"):
        verify_bundle(signed_again(unpack(bundle), **{field: value}))


def test_the_key_that_was_given_must_have_signed(bundle: bytes) -> None:
    with pytest.raises(EvidenceError, match="somebody else made it"):
        verify_bundle(bundle, Pins(key=KEYS["shop"].public.to_text()))
    with pytest.raises(EvidenceError, match="about another study"):
        verify_bundle(bundle, Pins(study_hash="0" * 64))


def test_a_run_of_somebody_elses_keys_is_found_by_the_pin(
    ran: Ran, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever makes all keys can make a bundle that is sound in itself."""
    monkeypatch.setitem(KEYS, "bank", KEYS["mallory"])
    forged = play(with_key(ran.study, "bank", KEYS["mallory"]), tmp_path)
    data = forged.bundle()
    verify_bundle(data)
    with pytest.raises(EvidenceError, match="about another study"):
        verify_bundle(data, Pins(study_hash=ran.study.hash))


def edited(files: Files, name: str, change: Callable[[str], str]) -> Files:
    text = files[name].decode()
    assert change(text) != text
    return files | {name: change(text).encode()}


def in_ledger(change: Callable[[dict], object]) -> Callable[[str], str]:  # type: ignore[type-arg]
    def edit(text: str) -> str:
        saved = json.loads(text)
        change(saved)
        return json.dumps(saved, indent=1, ensure_ascii=False) + "\n"

    return edit


INSIDER = {
    "fewer words": ("record.txt", lambda text: text.replace("epsilon 4", "epsilon 1")),
    "another page": ("record.html", lambda text: text.replace("epsilon 4", "epsilon 1")),
    "a cheaper charge": (
        "ledger.json",
        in_ledger(lambda saved: saved["lines"][0]["entry"].update(epsilon="1.0")),
    ),
    "no charge": ("ledger.json", in_ledger(lambda saved: saved["lines"].pop(0))),
    "a release left out": ("ledger.json", in_ledger(lambda saved: saved["lines"].pop())),
    "another release": (
        "ledger.json",
        in_ledger(lambda saved: saved["lines"][0]["entry"].update(release_sha256="0" * 64)),
    ),
    "another chain": (
        "ledger.json",
        in_ledger(lambda saved: saved["lines"][1].update(previous="0" * 64)),
    ),
    "another head": (
        "ledger.json",
        in_ledger(lambda saved: saved["head"].update(hash="0" * 64)),
    ),
    "no ledger": ("ledger.json", lambda _: "{}"),
    "less spent": (
        "ledger.json",
        in_ledger(lambda saved: saved["spent"]["customers"].update(epsilon="0.5")),
    ),
    "another statement": (
        "result/statement.txt",
        lambda text: text.replace("epsilon 4", "epsilon 1"),
    ),
    "another certificate": (
        "result/certificate.json",
        lambda text: re.sub(r'"epsilon": [\d.]+', '"epsilon": 0.5', text),
    ),
    "another budget": (
        "result/study.toml",
        lambda text: text.replace("epsilon = 4", "epsilon = 1"),
    ),
    "another transcript": (
        "result/transcript.json",
        lambda text: text.replace('"sent"', '"taken"'),
    ),
}


@pytest.mark.parametrize("case", INSIDER)
def test_a_participant_cannot_sign_what_does_not_follow(bundle: bytes, case: str) -> None:
    name, change = INSIDER[case]
    with pytest.raises(EvidenceError):
        verify_bundle(signed_again(edited(unpack(bundle), name, change)))


def test_a_release_that_was_sent_and_not_charged(bundle: bytes) -> None:
    """With the ledger's own lines and hashes in order, and the record made to fit."""
    files = unpack(bundle)
    saved = json.loads(files["ledger.json"])
    saved["lines"].pop()
    saved["head"] = {"number": 1, "hash": saved["lines"][0]["hash"]}
    files["ledger.json"] = json.dumps(saved).encode()
    with pytest.raises(EvidenceError, match="PartyRelease was sent and stands in no entry"):
        verify_bundle(signed_again(files))


def test_epsilon_is_computed_and_not_read(bundle: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Were the noise of the plan smaller than it is, the same bundle would not verify."""
    true_plan = verify.make_plan

    def noisier(study, **given):  # type: ignore[no-untyped-def]
        plan = true_plan(study, **given)
        return dataclasses.replace(plan, local=plan.local[:1] * 6)

    monkeypatch.setattr(verify, "make_plan", noisier)
    with pytest.raises(EvidenceError, match=r"another plan follows"):
        verify_bundle(bundle)
    monkeypatch.setattr(type(true_plan(keyed_study())), "fingerprint", property(lambda _: _claimed))
    _claimed = json.loads(unpack(bundle)["result/result.json"])["signed"]["plan"]
    with pytest.raises(EvidenceError, match=r"more than the agreed 4"):
        verify_bundle(bundle)


def test_who_did_not_take_part_makes_none(ran: Ran, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="belongs to nobody in study"):
        make_bundle(ran.result("bank"), ran.home("bank"), KEYS["mallory"])
    with pytest.raises(ParameterError, match="was written by 'bank'"):
        make_bundle(ran.result("bank"), ran.home("shop"), KEYS["shop"])
    with pytest.raises(ParameterError, match="has no journal"):
        make_bundle(ran.result("bank"), tmp_path, KEYS["bank"])
    with pytest.raises(JournalError, match="is not finished"):
        make_bundle(ran.result("bank"), ran.home("shop"), KEYS["bank"])
    simulated = Result.read(write_small_result(tmp_path / "simulated"))
    with pytest.raises(ParameterError, match="it is of a simulation"):
        make_bundle(simulated, ran.home("bank"), KEYS["bank"])


@pytest.mark.parametrize("ending", ENDINGS)
def test_verifying_leaves_no_temporary_files(
    bundle: bytes,
    ending: BaseException | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check_temporary_files(
        lambda: verify_bundle(bundle),
        inside=(verify.Result, "read"),
        ending=ending,
        folder=tmp_path,
        monkeypatch=monkeypatch,
    )
