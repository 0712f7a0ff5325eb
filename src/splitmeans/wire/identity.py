"""Who a participant is: a key pair that signs and a key pair that others seal messages to.

Signing is Ed25519, sealing is in `wire.sealing`. The public half travels as one line of text and is
pinned by the study (rule R9); people compare its fingerprint over a channel of their own. The
private half lives in a key file. Layouts: docs/reference/wire.md.
"""

import base64
import functools
import hashlib
import json
import re
import secrets
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric import ed25519, x25519
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from splitmeans.errors import ParameterError
from splitmeans.wire.private_file import read_private, write_new
from splitmeans.wire.sealing import SEALING_BYTES, SEED_BYTES, OpeningKey, SealingKey

SIGNING_BYTES = 32
SIGNATURE_BYTES = 64

_PRIME = 2**255 - 19

_TEXT_PREFIX = "smid1-"
_CHECK_BYTES = 6  # makes the bytes a multiple of three, so that base64 needs no padding
_TEXT_LENGTH = (SIGNING_BYTES + SEALING_BYTES + _CHECK_BYTES) // 3 * 4
_DIGEST_PREFIX = b"splitmeans identity 1\0"

_FILE_FORMAT = "splitmeans private key 1"
_MAX_FILE_BYTES = 16 * 1024
# scrypt needs n x 1 KiB of memory (r = 8, p = 1). The cost is written into the file, so a file must
# not be able to ask for more memory than a small machine has.
_COST = 2**17
_COSTS = (2**15, 2**16, 2**17, 2**18)
_SALT_BYTES = 32
_NONCE_BYTES = 12


def spoken(digest: str | bytes) -> str:
    """Return a SHA-256 digest as 8 groups of 5 decimal digits, to be read out and compared.

    The digits are the digest as a big-endian number modulo 10^40: 132 bits of it. Study hashes and
    identities are shown this way.

    The digest is 32 bytes, or their 64 hexadecimal digits.
    """
    if isinstance(digest, str) and re.fullmatch("[0-9a-fA-F]{64}", digest):
        digest = bytes.fromhex(digest)
    if not isinstance(digest, bytes) or len(digest) != 32:
        raise ParameterError("digest must be 32 bytes or 64 hexadecimal digits")
    digits = f"{int.from_bytes(digest, 'big') % 10**40:040d}"
    return " ".join(digits[start : start + 5] for start in range(0, 40, 5))


@dataclass(frozen=True, kw_only=True, repr=False)
class PublicIdentity:
    """The public keys of a participant.

    Attributes:
        signing: Ed25519 public key, 32 bytes.
        sealing: ML-KEM-768 and X25519 public keys, 1216 bytes.
    """

    signing: bytes
    sealing: bytes

    def __post_init__(self) -> None:
        if not isinstance(self.signing, bytes) or len(self.signing) != SIGNING_BYTES:
            raise ParameterError(f"signing key must be {SIGNING_BYTES} bytes")
        _refuse_weak_point(self.signing)
        _ = self.sealing_key

    def __repr__(self) -> str:
        return f"<PublicIdentity {self.fingerprint[:11]} ...>"

    @property
    def digest(self) -> bytes:
        """SHA-256 of both keys; stands for the identity."""
        return hashlib.sha256(_DIGEST_PREFIX + self.signing + self.sealing).digest()

    @property
    def fingerprint(self) -> str:
        """The digest in the form that people compare by telephone."""
        return spoken(self.digest)

    def to_text(self) -> str:
        """Return the identity as one line of text, with a checksum against typing errors."""
        data = self.signing + self.sealing + self.digest[:_CHECK_BYTES]
        return _TEXT_PREFIX + base64.urlsafe_b64encode(data).decode()

    @staticmethod
    def from_text(text: str) -> "PublicIdentity":
        """Read what `to_text` wrote; white space around it is allowed."""
        body = _body_of_text(text)
        data = base64.urlsafe_b64decode(body)
        keys, check = data[:-_CHECK_BYTES], data[-_CHECK_BYTES:]
        if hashlib.sha256(_DIGEST_PREFIX + keys).digest()[:_CHECK_BYTES] != check:
            raise ParameterError(
                "identity text has a typing error: its checksum does not fit; copy it again"
            )
        return PublicIdentity(signing=keys[:SIGNING_BYTES], sealing=keys[SIGNING_BYTES:])

    def verify(self, data: bytes, signature: bytes) -> bool:
        """Return whether this participant signed the data."""
        if len(signature) != SIGNATURE_BYTES:
            return False
        try:
            ed25519.Ed25519PublicKey.from_public_bytes(self.signing).verify(signature, data)
        except InvalidSignature:
            return False
        return True

    @functools.cached_property
    def sealing_key(self) -> SealingKey:
        """What the first messages of a run are sealed to; later ones have keys of the run."""
        return SealingKey(self.sealing)


class Identity:
    """The private keys of a participant. Never printed, never pickled.

    Both are seeds of 32 secret bytes: of the Ed25519 and of the X-Wing key.
    """

    __slots__ = ("_seeds", "_signing_key", "opening_key", "public")

    def __init__(self, *, signing: bytes, sealing: bytes) -> None:
        if len(signing) != SEED_BYTES or len(sealing) != SEED_BYTES:
            raise ParameterError(f"seeds of an identity must be {SEED_BYTES} bytes each")
        self._seeds = signing + sealing
        self._signing_key = ed25519.Ed25519PrivateKey.from_private_bytes(signing)
        self.opening_key = OpeningKey(sealing)
        self.public = PublicIdentity(
            signing=self._signing_key.public_key().public_bytes_raw(),
            sealing=self.opening_key.public.data,
        )

    @staticmethod
    def new() -> "Identity":
        """Make a fresh identity."""
        return Identity(
            signing=secrets.token_bytes(SEED_BYTES), sealing=secrets.token_bytes(SEED_BYTES)
        )

    def __repr__(self) -> str:
        return f"<Identity {self.public.fingerprint[:11]} ...>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("an Identity holds private keys and cannot be pickled or copied")

    def sign(self, data: bytes) -> bytes:
        """Return a signature; every use begins its data with a text of its own."""
        return self._signing_key.sign(data)

    def derive(self, info: bytes) -> bytes:
        """Return 32 bytes that only this identity can derive; every use has a text of its own."""
        salt = b"splitmeans derived secret 1"
        return HKDF(algorithm=SHA256(), length=32, salt=salt, info=info).derive(self._seeds)

    def save(self, path: str | Path, passphrase: str | None = None) -> None:
        """Write the key file, readable by its owner only; an existing file is never replaced."""
        public = self.public.to_text()
        document: dict[str, Any] = {"format": _FILE_FORMAT, "public": public}
        if passphrase is None:
            document |= {"scrypt": None, "secret": self._seeds.hex()}
        else:
            salt, nonce = secrets.token_bytes(_SALT_BYTES), secrets.token_bytes(_NONCE_BYTES)
            cipher = _file_cipher(passphrase, salt=salt, cost=_COST)
            secret = nonce + cipher.encrypt(nonce, self._seeds, public.encode())
            document |= {"scrypt": {"n": _COST, "salt": salt.hex()}, "secret": secret.hex()}
        write_new(Path(path), (json.dumps(document, indent=1) + "\n").encode(), what="key file")

    @staticmethod
    def load(path: str | Path, passphrase: str | None = None) -> "Identity":
        """Read a key file that `save` wrote."""
        path = Path(path)
        public, scrypt, secret = _parse_file(_read_file(path), path)
        if scrypt is None and passphrase is not None:
            raise ParameterError(f"key file {path} has no passphrase, but one was given")
        if scrypt is not None:
            if passphrase is None:
                raise ParameterError(f"key file {path} is protected: give its passphrase")
            cipher = _file_cipher(passphrase, salt=scrypt[1], cost=scrypt[0])
            nonce, sealed = secret[:_NONCE_BYTES], secret[_NONCE_BYTES:]
            try:
                secret = cipher.decrypt(nonce, sealed, public.encode())
            except InvalidTag:
                raise ParameterError(
                    f"passphrase of key file {path} is wrong, or the file is damaged"
                ) from None
        identity = Identity(signing=secret[:SEED_BYTES], sealing=secret[SEED_BYTES:])
        if identity.public.to_text() != public:
            raise ParameterError(f"key file {path} is damaged: its two halves do not fit")
        return identity

    @staticmethod
    def load_public(path: str | Path) -> PublicIdentity:
        """Read the public half of a key file, which needs no passphrase.

        A passphrase protects it as well, but only `load` can tell: who changes the file of another
        user can make this method, and no other, show another key.
        """
        path = Path(path)
        public, scrypt, _ = _parse_file(_read_file(path), path)
        if scrypt is None:
            return Identity.load(path).public
        try:
            return PublicIdentity.from_text(public)
        except ParameterError as problem:
            raise ParameterError(f"key file {path} is damaged: {problem}") from None

    @staticmethod
    def is_protected(path: str | Path) -> bool:
        """Return whether a key file asks for a passphrase."""
        return _parse_file(_read_file(Path(path)), Path(path))[1] is not None


def _refuse_weak_point(signing: bytes) -> None:
    """Refuse a public key of small order, for which anyone can sign."""
    y = int.from_bytes(signing, "little") % 2**255
    probe = x25519.X25519PrivateKey.from_private_bytes(b"\x01" * 32)
    try:
        # The Edwards point's Montgomery form, so that the exchange's own check covers it; the
        # point without one (y = 1) has no inverse below.
        u = (1 + y) * pow(1 - y, -1, _PRIME) % _PRIME
        probe.exchange(x25519.X25519PublicKey.from_public_bytes(u.to_bytes(32, "little")))
    except ValueError:
        raise ParameterError("signing key is not a usable Ed25519 public key") from None


def _body_of_text(text: str) -> str:
    """Return the base64 part of an identity's text, of the right length and alphabet."""
    if not isinstance(text, str):
        raise ParameterError("identity must be a text")
    text = text.strip()
    found = re.match(r"smid([0-9]{1,9})-", text)
    if found is None:
        raise ParameterError(f"identity text must start with {_TEXT_PREFIX!r}")
    if found[0] != _TEXT_PREFIX:
        raise ParameterError(
            f"identity text has version {found[1]}, this splitmeans reads version 1 only"
        )
    body = text[len(_TEXT_PREFIX) :]
    wrong = re.search("[^A-Za-z0-9_-]", body)
    if wrong is not None:
        place = len(_TEXT_PREFIX) + wrong.start() + 1
        raise ParameterError(
            f"identity text must be letters, digits, '-' and '_' on one line; character {place} "
            "is not"
        )
    if len(body) != _TEXT_LENGTH:
        raise ParameterError(
            f"identity text must have {len(_TEXT_PREFIX) + _TEXT_LENGTH} characters, got "
            f"{len(text)}; was it cut?"
        )
    return body


def _file_cipher(passphrase: str, *, salt: bytes, cost: int) -> ChaCha20Poly1305:
    if not passphrase:
        raise ParameterError("passphrase must not be empty; leave it out to have none")
    # Keyboards differ in how they compose accents; the file must open from any of them.
    text = unicodedata.normalize("NFC", passphrase).encode(errors="surrogateescape")
    return ChaCha20Poly1305(Scrypt(salt=salt, length=32, n=cost, r=8, p=1).derive(text))


def _read_file(path: Path) -> bytes:
    return read_private(path, what="key file", max_bytes=_MAX_FILE_BYTES)


def _parse_file(data: bytes, path: Path) -> tuple[str, tuple[int, bytes] | None, bytes]:
    """Return public text, scrypt's cost and salt if there is a passphrase, and secret bytes."""
    damaged = ParameterError(f"key file {path} is damaged, or not a splitmeans key file")
    try:
        document = json.loads(data)
        if document["format"] != _FILE_FORMAT:
            raise ParameterError(
                f"key file {path} must have format {_FILE_FORMAT!r}; is it of another version?"
            )
        if set(document) != {"format", "public", "scrypt", "secret"}:
            raise damaged
        public, scrypt, secret = (document[name] for name in ("public", "scrypt", "secret"))
        secret = bytes.fromhex(secret)
        if scrypt is not None:
            scrypt = (scrypt["n"], bytes.fromhex(scrypt["salt"]))
    except ParameterError:
        raise
    except (ValueError, TypeError, KeyError, RecursionError):
        raise damaged from None
    extra = 0 if scrypt is None else _NONCE_BYTES + 16
    if not isinstance(public, str) or len(secret) != 2 * SEED_BYTES + extra:
        raise damaged
    if scrypt is not None:
        cost, salt = scrypt
        if type(cost) is not int or cost not in _COSTS or len(salt) != _SALT_BYTES:
            raise ParameterError(
                f"key file {path} is damaged: scrypt's n must be one of {_COSTS} and its salt "
                f"{_SALT_BYTES} bytes"
            )
    return public, scrypt, secret
