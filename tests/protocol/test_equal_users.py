"""The private test of equal users: its description computed anew, and what shares do not tell."""

import dataclasses
import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from splitmeans.errors import ProtocolError
from splitmeans.party.equal_users import agree, make_share, user_set_digest
from splitmeans.party.session import Session
from splitmeans.study import Study
from splitmeans.table.prepare import prepare_table
from tests.kernels.plain_blake3 import number

VECTORS = Path(__file__).parents[1] / "vectors" / "equal_users.json"
ONE, TWO = b"\x01" * 32, b"\x02" * 32
SAME, OTHER = b"\x11" * 32, b"\x12" * 32


def sessions(study: Study, run: str = "1") -> list[Session]:
    return [Session(study=study, run=run, party=name) for name in study.party_names]


def exchange(one: Session, two: Session, *, users: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
    """Both keys of a pair with these digests of their users."""
    first, second = (
        make_share(own, other.party, users=digest, secret=secret)
        for own, other, digest, secret in (
            (one, two, users[0], ONE),
            (two, one, users[1], TWO),
        )
    )
    return (
        agree(one, two.party, users=users[0], secret=ONE, share=second),
        agree(two, one.party, users=users[1], secret=TWO, share=first),
    )


# ---- the digest of the users ----


def digest_by_hand(study: Study, ids: list[str], *, run: str) -> bytes:
    """As docs/reference/wire.md describes it, with a BLAKE3 of the tests."""
    bound = f"{study.hash}\n{run}\nown\n".encode()
    key = hashlib.sha256(b"splitmeans user numbers 1\n" + bound).digest()
    total = sum(number(text.encode(), key=key) for text in ids)
    counted = len(ids).to_bytes(8, "little") + total.to_bytes(520, "little")
    return hashlib.sha256(b"splitmeans user set 2\n" + bound + counted).digest()


def test_digests_are_of_all_users(small_study):
    study = small_study("decoy", 2)
    ids = ["007", " 8", "X"]
    table = prepare_table(study.parties[0], np.zeros((3, 2)), ids=ids)
    assert user_set_digest(study, table, run="7") == digest_by_hand(study, ids, run="7")


def test_user_sets_are_compared_whatever_the_order_of_rows(small_study):
    study = small_study("decoy", 2)
    party = study.parties[0]
    ids = np.array([f"user-{number}" for number in range(20)])
    rows = np.random.default_rng(1).uniform(0, 100, (20, 2))
    order = np.random.default_rng(2).permutation(20)
    table = prepare_table(party, rows, ids=ids)
    digest = user_set_digest(study, table, run="1")
    assert len(digest) == 32
    shuffled = prepare_table(party, rows[order] / 2, ids=ids[order])
    assert user_set_digest(study, shuffled, run="1") == digest
    fewer = prepare_table(party, rows[:19], ids=ids[:19])
    assert user_set_digest(study, fewer, run="1") != digest
    assert user_set_digest(study, table, run="2") != digest
    other = dataclasses.replace(study, name="other")
    assert user_set_digest(other, table, run="1") != digest


def test_partial_user_sets_have_no_digest(small_study):
    study = small_study("decoy", 2, user_sets="partial")
    table = prepare_table(study.parties[0], np.zeros((3, 2)), ids=[1, 2, 3])
    assert user_set_digest(study, table, run="1") == b""
    one, two = sessions(study)
    assert make_share(one, two.party, users=b"", secret=ONE) == b""
    assert agree(one, two.party, users=b"", secret=ONE, share=b"") == b""


# ---- SPAKE2 as it is described, on a curve written down here ----

Q = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, Q) % Q
Point = tuple[int, int]


def decode(data: bytes) -> Point:
    number = int.from_bytes(data, "little")
    y, sign = number & (2**255 - 1), number >> 255
    square = (y * y - 1) * pow(D * y * y + 1, -1, Q) % Q
    x = pow(square, (Q + 3) // 8, Q)
    if x * x % Q != square:
        x = x * pow(2, (Q - 1) // 4, Q) % Q
    assert x * x % Q == square
    return (Q - x if x & 1 != sign else x), y


def encode(point: Point) -> bytes:
    return (point[1] | (point[0] & 1) << 255).to_bytes(32, "little")


def add(p: Point, q: Point) -> Point:
    both = D * p[0] * q[0] * p[1] * q[1]
    x = (p[0] * q[1] + q[0] * p[1]) * pow(1 + both, -1, Q)
    y = (p[1] * q[1] + p[0] * q[0]) * pow(1 - both, -1, Q)
    return x % Q, y % Q


def times(number: int, point: Point) -> Point:
    found: Point = (0, 1)
    number %= L
    while number:
        if number & 1:
            found = add(found, point)
        point, number = add(point, point), number >> 1
    return found


BASE = decode((4 * pow(5, -1, Q) % Q).to_bytes(32, "little"))


def hkdf(secret: bytes, info: bytes, length: int) -> bytes:
    """RFC 5869 without salt."""
    key, block, found = hmac.digest(bytes(32), secret, "sha256"), b"", b""
    for count in range(1, -(-length // 32) + 1):
        block = hmac.digest(key, block + info + bytes([count]), "sha256")
        found += block
    return found[:length]


def by_hand(vectors: dict[str, Any], *, a: bytes, b: bytes) -> tuple[bytes, bytes, bytes]:
    """The shares and the key of A "org0" and B "org1", who have these secrets."""
    m, n = (decode(bytes.fromhex(vectors[name])) for name in ("M", "N"))
    password = bytes.fromhex(vectors["users"])
    scalar = int.from_bytes(hkdf(password, b"SPAKE2 pw", 48), "big") % L
    x, y = (
        int.from_bytes(hkdf(secret, f"splitmeans share 1 own\n{to}".encode(), 64), "big") % L
        for secret, to in ((a, "org1"), (b, "org0"))
    )
    first = encode(add(times(x, BASE), times(scalar, m)))
    second = encode(add(times(y, BASE), times(scalar, n)))
    text = b"".join(hashlib.sha256(part).digest() for part in (password, b"org0", b"org1"))
    key = hashlib.sha256(text + first + second + encode(times(x * y, BASE))).digest()
    return b"A" + first, b"B" + second, key


def test_vectors(small_study):
    """What this version sends and finds, what was written down, and what the formulas give."""
    vectors = json.loads(VECTORS.read_text())
    a, b, users = (bytes.fromhex(vectors[name]) for name in ("secret_a", "secret_b", "users"))
    one, two = sessions(small_study("decoy", 2))
    found = (
        make_share(one, "org1", users=users, secret=a),
        make_share(two, "org0", users=users, secret=b),
        agree(one, "org1", users=users, secret=a, share=bytes.fromhex(vectors["share_b"])),
    )
    expected = tuple(bytes.fromhex(vectors[name]) for name in ("share_a", "share_b", "key"))
    assert found == expected == by_hand(vectors, a=a, b=b)
    assert found[2] == agree(two, "org0", users=users, secret=b, share=found[0])


# ---- what it tells ----


def test_equal_users_get_one_key_and_others_get_two(small_study):
    one, two, three = sessions(small_study("decoy", 3))
    same = exchange(one, two, users=(SAME, SAME))
    assert same[0] == same[1]
    other = exchange(one, two, users=(SAME, OTHER))
    assert len({*same, *other}) == 3
    # Every pair has a key of its own.
    assert exchange(one, three, users=(SAME, SAME))[0] != same[0]


def test_shares_are_fresh_for_every_receiver_and_secret_and_the_same_again(small_study):
    one = sessions(small_study("decoy", 3))[0]
    shares = {
        make_share(one, other, users=SAME, secret=secret)
        for other in one.others
        for secret in (ONE, TWO)
    }
    assert len(shares) == 4
    assert {len(share) for share in shares} == {33}
    again = make_share(one, "org1", users=SAME, secret=ONE)
    assert again in shares


def test_a_share_of_one_run_is_of_no_use_in_another(small_study):
    """The digest has the run in it, so the same users have another password there."""
    study = small_study("decoy", 2)
    table = prepare_table(study.parties[0], np.zeros((3, 2)), ids=["a", "b", "c"])
    first, second = (user_set_digest(study, table, run=run) for run in ("1", "2"))
    (one, two), (one_again, _) = sessions(study), sessions(study, run="2")
    old = make_share(two, one.party, users=first, secret=TWO)
    fresh = agree(one_again, two.party, users=second, secret=ONE, share=old)
    mine = make_share(one_again, two.party, users=second, secret=ONE)
    assert agree(two, one.party, users=first, secret=TWO, share=mine) != fresh


ZERO = (1).to_bytes(32, "little")
ORDER_2 = (Q - 1).to_bytes(32, "little")
NOT_ON_CURVE = (2).to_bytes(32, "little")


@pytest.mark.parametrize(
    "share",
    [b"", b"B", b"B" + ZERO, b"B" + ORDER_2, b"B" + NOT_ON_CURVE, b"A" * 33, bytes(33), b"B" * 66],
    ids=["none", "short", "zero", "small order", "no point", "wrong side", "no side", "two"],
)
def test_shares_that_are_none_are_refused_whatever_the_users_are(share, small_study):
    one = sessions(small_study("decoy", 2))[0]
    said = set()
    for users in (SAME, OTHER):
        with pytest.raises(ProtocolError, match="'org1' sent no share") as failure:
            agree(one, "org1", users=users, secret=ONE, share=share)
        said.add(str(failure.value))
    assert len(said) == 1


def test_an_own_share_sent_back_is_refused(small_study):
    one = sessions(small_study("decoy", 2))[0]
    own = make_share(one, "org1", users=SAME, secret=ONE)
    for side in (own[:1], b"B"):
        with pytest.raises(ProtocolError, match="sent no share"):
            agree(one, "org1", users=SAME, secret=ONE, share=side + own[1:])
