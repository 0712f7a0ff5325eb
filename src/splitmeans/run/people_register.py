"""A register that homes of one organisation share, so that each knows the people of the others.

A folder that all of them can write: a secret under which records of people are made, and one file
for each run that a home has begun. A home that has joined a register does not run without it.
Nothing in it tells an id to somebody without the secret; keep it from other organisations.
"""

import json
import secrets
from dataclasses import dataclass
from pathlib import Path

from splitmeans.errors import HomeUnavailable, ParameterError
from splitmeans.privacy.people import SECRET_BYTES, People
from splitmeans.run.home import write_file
from splitmeans.run.people_records import SECRET_FILE, Known, read_secret
from splitmeans.run.records import RunKey

POINTER_FILE = "people.register"
_FORMAT = "splitmeans people register 1"


@dataclass(frozen=True, kw_only=True)
class Register:
    """A register that a home has joined.

    Attributes:
        folder: The register.
        home_name: What the home is called in it.
    """

    folder: Path
    home_name: str

    @staticmethod
    def of_home(home: Path) -> "Register | None":
        """Return the register that a home has joined, None if none."""
        pointer = home / POINTER_FILE
        if not pointer.exists():
            return None
        try:
            facts = json.loads(pointer.read_text(encoding="utf-8"))
            return Register(folder=Path(facts["folder"]), home_name=str(facts["home"]))
        except (OSError, ValueError, KeyError, TypeError):
            raise ParameterError(
                f"{pointer} is damaged: join the register again with `splitmeans ledger register`"
            ) from None

    def join(self, home: Path) -> None:
        """Let a home take part, and make the register if it is empty."""
        if not self.folder.is_dir():
            raise ParameterError(f"{self.folder}: a register is a folder that exists")
        if not self.home_name.isprintable() or not self.home_name or ":" in self.home_name:
            raise ParameterError("the home's name must be printable text without ':'")
        secret = self.folder / SECRET_FILE
        if not secret.exists():
            write_file(secret, secrets.token_hex(SECRET_BYTES).encode() + b"\n", mode=0o660)
        read_secret(secret, is_shared=True)
        facts = {"folder": str(self.folder.resolve()), "home": self.home_name}
        write_file(home / POINTER_FILE, json.dumps(facts).encode() + b"\n")

    @property
    def secret(self) -> bytes:
        """The secret of all records in it.

        Raises:
            HomeUnavailable: The register is not there.
        """
        if not (self.folder / SECRET_FILE).exists():
            raise HomeUnavailable(
                f"the register of people {self.folder} is not there, and this home does not run "
                "without it: mount it, or join another with `splitmeans ledger register`"
            )
        return read_secret(self.folder / SECRET_FILE, is_shared=True)

    def known(self) -> list[Known]:
        """Return the records of all other homes."""
        found = []
        for path in sorted(self.folder.glob("*.people")):
            try:
                facts = json.loads(path.read_text(encoding="utf-8"))
                if facts["format"] != _FORMAT:
                    raise ValueError("another format")
                people = People.load(bytes.fromhex(facts["record"]))
                one = Known(source=str(facts["source"]), people=people, home=str(facts["home"]))
            except (OSError, ValueError, KeyError, TypeError) as problem:
                raise HomeUnavailable(
                    f"{path} in the register of people cannot be read ({problem}); without it "
                    "people of another home would not be recognised"
                ) from None
            if one.home != self.home_name:
                found.append(one)
        return found

    def store(self, key: RunKey, *, source: str, people: People) -> None:
        """Tell the other homes of a run, before it is begun."""
        facts = {
            "format": _FORMAT,
            "home": self.home_name,
            "source": source,
            "record": people.dump().hex(),
        }
        path = self.folder / f"{people.sha256[:16]}-{key.lock_name}.people"
        write_file(path, json.dumps(facts).encode() + b"\n", mode=0o660)
