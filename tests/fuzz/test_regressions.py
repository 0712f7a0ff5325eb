"""Inputs that once came out as another error, a warning, a hang or a crash; each has its cause."""

import dataclasses
import io
import json
import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from splitmeans.errors import (
    DataError,
    JournalError,
    ParameterError,
    PrivacyError,
    ProtocolError,
    StudyError,
)
from splitmeans.membership.decoy import join as decoy_join
from splitmeans.party import node as party_node
from splitmeans.party import states as party_states
from splitmeans.party.check_result import check_result
from splitmeans.party.saved_state import load_state
from splitmeans.party.session import Session
from splitmeans.plan.settle import make_plan
from splitmeans.plan.stages import flat_values
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.study import Column, PartySpec, Study
from splitmeans.study.features import features_of, to_own_units
from splitmeans.synopsis import file as synopsis_file
from splitmeans.synopsis.synopsis import Synopsis
from splitmeans.table.options import SourceOptions
from splitmeans.table.sources.open import open_source
from splitmeans.wire.codec import MAGIC, decode, encode
from splitmeans.wire.envelope import Envelope
from splitmeans.wire.messages import (
    DecoyMessage,
    Ready,
    RunPlan,
)
from splitmeans.wire.saved_result import dump_result, load_result
from splitmeans.wire.slot import SERVER
from tests.fuzz import corpus, targets


def framed(header: Any, body: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return MAGIC + len(text).to_bytes(4, "little") + text + body


# ---- codec ----


@pytest.mark.parametrize("shape", [[0, 2**63], [2**62, 0], [2**40, 2**40], [0, 10**400]])
def test_a_shape_beyond_any_array_is_refused(shape: list[int]) -> None:
    with pytest.raises(ProtocolError, match=r"must have a shape|needs .* bytes"):
        decode(framed({"type": "CellSketchMessage", "fields": {"registers": shape}}))


def test_lengths_with_thousands_of_digits_are_refused() -> None:
    # Their product had too many digits to be printed in the error.
    digits = b"9" * 4000
    header = b'{"fields":{"registers":[%b,%b]},"type":"CellSketchMessage"}' % (digits, digits)
    with pytest.raises(ProtocolError, match="must have a shape"):
        decode(framed(header))


def test_messages_inside_messages_are_not_followed() -> None:
    # The recursion went as deep as the header was long.
    header: Any = {"type": "PartyRelease", "fields": {}}
    for _ in range(200):
        fields = {"centres": [0], "points": [0], "membership": header}
        header = {"type": "PartyRelease", "fields": fields}
    with pytest.raises(ProtocolError, match=r"PartyRelease\.membership must not be a PartyRelease"):
        decode(framed(header))


@pytest.mark.parametrize(
    "header",
    [
        b'{"type":"Ready","fields":{"study_hash":"7"}}',
        b'{"fields":{"study_hash":"7"}, "type":"Ready"}',
        b'{"fields":{"study_hash":"8"},"fields":{"study_hash":"7"},"type":"Ready"}',
    ],
)
def test_a_message_has_one_form_of_bytes(header: bytes) -> None:
    assert decode(encode(Ready(study_hash="7"))).study_hash == "7"
    with pytest.raises(ProtocolError, match="not in canonical form"):
        decode(framed(header))


@pytest.mark.parametrize("text", ["AB", "a b", " ab"])
def test_bytes_have_one_form_of_text(text: str) -> None:
    with pytest.raises(ProtocolError, match="hexadecimal text"):
        decode(framed({"type": "KeyContribution", "fields": {"secret": text}}))


# ---- stored results and states ----


@pytest.mark.parametrize(
    "count",
    [b"true", b"null", b"[[[1.5]]]", b'"7"', b"[7]", b"[[[NaN]]]", b"[" * 5000],
)
def test_a_stored_result_with_values_that_are_none_is_refused(count: bytes) -> None:
    data = dump_result((), corpus.played("decoy").result)
    with pytest.raises(JournalError, match="stored result"):
        load_result(len(count).to_bytes(4, "little") + count + data[6:])


@pytest.mark.parametrize(
    "text",
    [
        '{"centres": [[1e999]], "released": []}',
        '{"centres": [[1]], "released": "1"}',
        '{"centres": 1, "released": []}',
        "[" * 5000,
    ],
)
def test_a_stored_state_with_other_values_is_refused(text: str) -> None:
    session = Session(study=corpus.study_of("counted"), run="1", party="org0")
    with pytest.raises(JournalError, match="saved state of run '1' cannot be read"):
        load_state("Released", text.encode(), session=session, open_table=targets._table)


# ---- studies ----


@pytest.mark.parametrize(
    "value", ["[" * 5000, "9" * 5000, "0x" + "f" * 5000, "[0x" + "f" * 5000 + "]", "{a=" * 3000]
)
def test_a_study_with_endless_values_is_refused(value: str) -> None:
    text = corpus.study_of("decoy").to_toml()
    with pytest.raises(StudyError, match=r"TOML|64 bits|too long to print"):
        Study.from_toml(text.replace("n_clusters = 3", f"n_clusters = {value}", 1))


def test_more_segments_than_any_grid_has_are_refused() -> None:
    # Looking for k' took a step for each of them.
    mapping = corpus.study_of("decoy").to_mapping() | {"n_clusters": 10**12}
    with pytest.raises(StudyError, match="n_clusters must be <= 1000000"):
        Study.from_mapping(mapping)


def test_a_delta_close_to_one_is_refused() -> None:
    # The exact accounting ran for hours.
    budget = {"epsilon": 1.0, "delta": 1 - 1e-15}
    mapping = corpus.study_of("decoy").to_mapping() | {"budget": budget, "expected_users": 1}
    with pytest.raises(PrivacyError, match=r"delta must be <= 0\.5 for exact accounting"):
        make_plan(Study.from_mapping(mapping))


def test_an_epsilon_that_cannot_be_divided_is_refused() -> None:
    budget = {"epsilon": 5e-324, "delta": 1e-5}
    with pytest.raises(StudyError, match="epsilon must be >= 1e-100"):
        Study.from_mapping(corpus.study_of("decoy").to_mapping() | {"budget": budget})


def test_bounds_close_to_the_largest_float_stay_finite() -> None:
    column = Column(name="x", low=-8e307, high=8e307)
    features = features_of(PartySpec(name="p", columns=(column,)))
    assert to_own_units(features, np.array([[-1.0], [1.0]])).ravel().tolist() == [-8e307, 8e307]


# ---- releases and results ----


def test_records_are_counted_before_they_are_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    # One bit becomes a byte: a message of a GiB took nine.
    honest = corpus.played("decoy").releases["org1"].membership
    assert isinstance(honest, DecoyMessage)
    size = 2**20
    many = DecoyMessage(
        lengths=np.array([8 * size]),
        lows=np.zeros(0, dtype=np.uint16),
        bitmaps=np.zeros(0, dtype=np.uint8),
        labels=np.zeros(size, dtype=np.uint8),
    )
    monkeypatch.setattr(decoy_join, "unpack_part", lambda *_, **__: pytest.fail("unpacked"))
    with pytest.raises(ProtocolError, match="party 0 must send 8388608 low bits of tags"):
        decoy_join.join_counts(
            [many, honest], groups=[(0, 1)], n_local_clusters=(2, 2), high_bits=12
        )


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("weights", 1e308, "weights that are no counts"),
        ("centres", 1e200, "centres outside the study's bounds"),
        ("local_centres", -(2**63), "points outside the study's bounds"),
    ],
)
def test_a_result_with_numbers_that_overflow_is_refused(
    field: str, value: Any, message: str
) -> None:
    run = corpus.played("decoy")
    changed = getattr(run.result, field).copy()
    changed.flat[-1] = value
    result = dataclasses.replace(run.result, **{field: changed})
    own = run.releases["org0"].centres
    session = Session(study=run.study, run="1", party="org0")
    with pytest.raises(ProtocolError, match=message):
        check_result(session, run.plan, result, released_centres=own, secure_noise=False)


def test_a_plan_of_thousands_of_numbers_is_not_repeated_in_the_error() -> None:
    run = corpus.played("decoy")
    state = next(s for s in run.party_states if isinstance(s, party_states.Prepared))
    plan = RunPlan(
        n_local_clusters=np.ones(5000, dtype=np.int64),
        released=np.array(flat_values(state.released), dtype=np.int64),
        fingerprint=run.plan.fingerprint,
        statement="",
    )
    envelope = Envelope(sender=SERVER, receiver=state.session.party, message=plan)
    with pytest.raises(ProtocolError, match=r"n_local_clusters=\(1, 1, 1\), the study"):
        party_node.step(state, envelope, noise=InsecureSeededNoise(1), rng=np.random.default_rng(1))


# ---- files ----


def open_file(path: Path) -> None:
    party = corpus.study_of("decoy").parties[0]
    with open_source(party, path, options=SourceOptions(progress=lambda *_: None)):
        pass


def test_an_arrow_file_with_places_beyond_its_text_is_refused(tmp_path: Path) -> None:
    # The interpreter crashed.
    table = pa.table({"id": ["1", "2"], "x": [1.0, 2.0], "c": ["aaaaa", "bbbbbbb"]})
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    data, offsets = sink.getvalue(), struct.pack("<3i", 0, 5, 12)
    assert data.count(offsets) == 1
    path = tmp_path / "table.arrow"
    path.write_bytes(data.replace(offsets, struct.pack("<3i", 0, 5, 2**31 - 1)))
    with pytest.raises(DataError, match="cannot be read as an Arrow file"):
        open_file(path)


def test_a_parquet_file_with_text_that_is_none_is_refused(tmp_path: Path) -> None:
    text = pa.array([b"a", b"\xff"]).view(pa.string())
    table = pa.table({"id": ["1", "2"], "x": [1.0, 2.0], "c": text})
    pq.write_table(table, tmp_path / "table.parquet")
    with pytest.raises(DataError, match="cannot be read as a parquet file"):
        open_file(tmp_path / "table.parquet")


def test_a_csv_file_whose_column_names_are_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes("id;x;c\n".encode("utf-16"))
    with pytest.raises(DataError, match="cannot be read as a csv file"):
        open_file(path)


def synopsis_with(path: Path, *, header: dict[str, Any] | None = None, **columns: Any) -> Path:
    table = pq.ParquetFile(io.BytesIO(corpus.seeds("synopsis")[0])).read()
    ((key, text),) = table.schema.metadata.items()
    changed = json.loads(text) | (header or {})
    for name, value in columns.items():
        values = pa.array([value] * table.num_rows)
        place = 0 if name == "weight" else table.num_columns - 1
        table = table.set_column(place, name, values)
    pq.write_table(table.replace_schema_metadata({key: json.dumps(changed)}), path)
    return path


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weight": 1e308}, "numbers that a study can have"),
        ({"label": float("nan")}, "labels must be whole numbers"),
        ({"header": {"features": [[]]}}, "must have 2 columns"),
        ({"header": {"features": 7}}, "not a splitmeans synopsis"),
        ({"header": {"party_names": [1, 2]}}, "must be text"),
        ({"header": {"weight_deviation": 1e300}}, "weight_deviation must be"),
    ],
)
def test_a_synopsis_file_with_other_values_is_refused(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ParameterError, match=message):
        Synopsis.from_parquet(synopsis_with(tmp_path / "synopsis.parquet", **changes))


def test_a_synopsis_file_of_very_many_rows_is_refused_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Fifteen megabytes of file stood for thirty gigabytes of zeros.
    monkeypatch.setattr(synopsis_file, "MAX_CELLS", 3)
    monkeypatch.setattr(synopsis_file, "_matrix", lambda *_, **__: pytest.fail("read"))
    with pytest.raises(ParameterError, match="at most 3 rows"):
        Synopsis.from_parquet(synopsis_with(tmp_path / "synopsis.parquet"))


# ---- relay ----


def test_a_content_length_with_thousands_of_digits_is_too_large() -> None:
    relay = pytest.importorskip("splitmeans.relay.app")
    request = SimpleNamespace(headers={"content-length": "9" * 5000})
    with pytest.raises(relay.Refused, match="a message may have"):
        relay._check_length(request, relay.RelayLimits())
