"""Every decoder under hypothesis: changed examples, structured nonsense, and plain bytes.

The same targets run for a million inputs with `python -m tests.fuzz.run`.
"""

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from splitmeans.errors import ParameterError
from splitmeans.wire.codec import _TYPES, MAGIC, _fields
from splitmeans.wire.identity import Identity
from tests.fuzz import corpus, mutate, run, targets

# Those whose inputs take milliseconds each.
SLOW = {"plan": 5, "release": 25, "synopsis": 20, "study_toml": 25}

_quick = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["auto", "decoy", "sketch", "equal", "00", "midpoint"])
)
trees = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)


@pytest.mark.parametrize("name", targets.TARGETS)
def test_valid_examples_pass(name: str) -> None:
    for data in corpus.seeds(name)[: SLOW.get(name, 60)]:
        targets.TARGETS[name](data)


@pytest.mark.parametrize("name", targets.TARGETS)
def test_changed_examples_end_in_typed_errors(name: str) -> None:
    @settings(parent=_quick, max_examples=SLOW.get(name, 50))
    @given(st.integers(0, len(corpus.seeds(name)) - 1), st.integers(0, 2**32), st.integers(1, 4))
    def check(which: int, seed: int, changes: int) -> None:
        data, chance = corpus.seeds(name)[which], random.Random(seed)
        for _ in range(changes):
            data = mutate.MUTATORS[name](data, chance)
        targets.TARGETS[name](data)

    check()


@pytest.mark.parametrize("name", targets.TARGETS)
@settings(parent=_quick, max_examples=25)
@given(data=st.binary(max_size=200))
def test_any_bytes_end_in_typed_errors(name: str, data: bytes) -> None:
    targets.TARGETS[name](data)


@st.composite
def messages(draw: st.DrawFn) -> bytes:
    """A message of any type whose fields are of the right kind more often than not."""
    kind = draw(st.sampled_from(sorted(_TYPES)))
    body = bytearray()

    def header(kind: str, depth: int) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        for name, (hint, dtype) in _fields(_TYPES[kind]).items():
            if dtype is not None:
                shape = draw(st.lists(st.integers(0, 5) | st.just(2**63), min_size=1, max_size=3))
                size = mutate._size(shape) * dtype.itemsize
                body.extend(draw(st.binary(min_size=size, max_size=size)))
                fields[name] = draw(st.just(shape) | scalars)
            elif hint is bytes:
                fields[name] = draw(st.binary(max_size=40).map(bytes.hex) | scalars)
            elif name == "membership" and depth < 3:
                fields[name] = header(draw(st.sampled_from(sorted(_TYPES))), depth + 1)
            else:
                fields[name] = draw(scalars)
        return {"type": kind, "fields": fields}

    tree = header(kind, 0)
    text = json.dumps(tree, sort_keys=True, separators=(",", ":")).encode()
    return MAGIC + len(text).to_bytes(4, "little") + text + bytes(body)


@settings(parent=_quick, max_examples=50)
@given(messages(), st.binary(min_size=3, max_size=3))
def test_messages_of_any_type_are_taken_or_refused_everywhere(message: bytes, head: bytes) -> None:
    targets.codec(message)
    targets.release(head[:2] + message)
    targets.result(head[:2] + message)
    targets.server_step(head + message)
    targets.party_step(head + message)


@settings(parent=_quick, max_examples=50)
@given(trees)
def test_any_tree_is_a_study_or_a_typed_error(tree: Any) -> None:
    data = json.dumps(tree).encode()
    targets.study_mapping(data)
    targets.key_file(data)
    for stage in range(len(corpus.saved_stages())):
        targets.saved_state(bytes([stage]) + data)


@settings(parent=_quick, max_examples=50)
@given(st.data())
def test_any_value_of_any_key_of_a_study_is_taken_or_refused(data: st.DataObject) -> None:
    mapping = json.loads(data.draw(st.sampled_from(corpus.seeds("study_mapping"))))
    table = data.draw(
        st.sampled_from([mapping, mapping["budget"], mapping["sketch"], mapping["parties"][0]])
    )
    table[data.draw(st.sampled_from(sorted(table)))] = data.draw(trees)
    targets.study_mapping(json.dumps(mapping).encode())


def test_a_damaged_protected_key_file_is_refused(tmp_path: Path) -> None:
    # A few only: every attempt with a passphrase takes scrypt's time.
    chance = random.Random(1)
    protected = corpus.seeds("key_file")[1]
    path = tmp_path / "key"
    for _ in range(10):
        path.write_bytes(mutate.change_bytes(protected, chance))
        path.chmod(0o600)
        with pytest.raises(ParameterError, match="key file"):
            Identity.load(path, passphrase="guess")


def test_every_target_has_a_share_a_mutator_and_seeds() -> None:
    assert set(run.SHARES) == set(mutate.MUTATORS) == set(targets.TARGETS)
    assert all(corpus.seeds(name) for name in targets.TARGETS)


def test_the_command_counts_inputs_and_ends_with_0(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.fuzz.run", "--target", "message_path,request"]
    command += ["--inputs", "60", "--seconds", "20", "--engine", "plain", "--jobs", "2"]
    done = subprocess.run(
        [*command, "--findings", str(tmp_path / "findings")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "60 inputs in" in done.stdout
    assert "0 findings" in done.stdout
    assert not (tmp_path / "findings").exists()


def test_a_finding_is_saved_once(tmp_path: Path) -> None:
    def fails(data: bytes) -> None:
        raise KeyError(data)

    recorder = run.Recorder("codec", fails, tmp_path)
    recorder(b"one")
    recorder(b"two")
    assert recorder.inputs == 2
    ((kind, path),) = recorder.findings.items()
    assert kind.startswith("KeyError at")
    assert Path(path).read_bytes() == b"one"
    assert "KeyError" in Path(path).with_suffix(".txt").read_text()
