"""Make a bundle of a run: by one who took part, with its own key, journal and ledger."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from splitmeans._version import __version__
from splitmeans.errors import JournalError, ParameterError
from splitmeans.evidence.bundle import pack
from splitmeans.evidence.ledger_extract import NONE, compare, extract, read_lines
from splitmeans.evidence.manifest import FORMAT, MANIFEST, SIGNATURE, Manifest, hashes
from splitmeans.evidence.pages import as_html, as_text
from splitmeans.evidence.record import record_of, title_of
from splitmeans.privacy.ledger import Ledger
from splitmeans.report.build import build_report
from splitmeans.report.html import render
from splitmeans.result.result import Result
from splitmeans.run.drive import DONE
from splitmeans.run.home import DATABASE
from splitmeans.run.journal import Journal
from splitmeans.run.records import RunKey
from splitmeans.wire.identity import Identity
from splitmeans.wire.slot import SERVER

_KS = range(2, 13)
README = """This archive is about one run of a study with splitmeans.

record.html     what happened, in plain words; print it, or save it as PDF from a browser
record.txt      the same as text
report.html     the segments that were found, with pictures; opens in a browser, needs no network
ledger.json     what this participant's ledger has about the run, with the hashes of its chain
result/         the published result, as the server signed it: study.toml (what was agreed),
                certificate.json (releases, costs, who can learn what), statement.txt (the same
                in words), transcript.json (hashes of all messages)
manifest.json   hashes of all files, signed by the participant (manifest.sig)

To check it, with splitmeans and the study file that you know:
    splitmeans archive verify FILE.zip --study study.toml
No row, no identifier, no private key and no label of a person is in it.
"""


def make_bundle(
    result: Result,
    home: Path,
    identity: Identity,
    *,
    progress: Callable[[str], object] = lambda _: None,
) -> bytes:
    """Return the bundle of a finished run; equal for equal results and ledgers.

    Args:
        result: The result folder of the run, as it was read from disk.
        home: The participant's home.
        identity: The participant's keys.
        progress: Told what is being done.
    """
    if not result.signed or result.folder is None:
        raise ParameterError(
            f"{result.where}: nobody signed this result, it is of a simulation; an archive is made "
            "of a run between organisations"
        )
    participant = participant_of(result, identity)
    saved = _ledger_of(result, home, participant)
    entries = read_lines(saved) if participant != SERVER else ()
    compare(
        entries,
        result.messages,
        study=result.study,
        run=result.facts["run"],
        participant=participant,
    )
    progress("writing the record")
    sections = record_of(
        result, participant=participant, entries=entries, spent=saved.get("spent", {})
    )
    title = title_of(result, participant)
    progress("drawing the report")
    files = {f"result/{name}": data for name, data in _result_files(result.folder).items()}
    files |= {
        "readme.txt": README.encode(),
        "record.txt": as_text(title, sections).encode(),
        "record.html": as_html(title, sections, signatures=(participant,)).encode(),
        "ledger.json": (json.dumps(saved, indent=1, ensure_ascii=False) + "\n").encode(),
        "report.html": render(build_report(result, ks=_KS)).encode(),
    }
    manifest = Manifest(
        format=FORMAT,
        splitmeans=__version__,
        study=result.study.name,
        study_hash=result.study.hash,
        run=result.facts["run"],
        participant=participant,
        key=identity.public.to_text(),
        result_hash=result.facts["result_hash"],
        published_at=result.facts["published_at"],
        files=hashes(files),
    )
    signed = {MANIFEST: manifest.data, SIGNATURE: manifest.signed(identity.sign)}
    return pack(files | signed)


def participant_of(result: Result, identity: Identity) -> str:
    """Return who of the study has this key.

    Raises:
        ParameterError: Nobody has, or the folder is another participant's.
    """
    own = identity.public.to_text()
    names = [name for name, text in result.study.public_keys.items() if text == own]
    if not names:
        raise ParameterError(
            f"the key with fingerprint {identity.public.fingerprint} belongs to nobody in study "
            f"{result.study.name!r}: an archive is signed by one who took part; name your home "
            "with --home. Who has the result folder alone can check it with `splitmeans result "
            "show`, and ask a participant for an archive"
        )
    if result.facts["participant"] != names[0]:
        raise ParameterError(
            f"{result.where} was written by {result.facts['participant']!r}, and the key is that "
            f"of {names[0]!r}: archive the folder in your own home, its transcript is yours"
        )
    return names[0]


def _ledger_of(result: Result, home: Path, participant: str) -> dict[str, Any]:
    """Return the ledger's lines of the run, after comparing the journal with the transcript."""
    if not (home / DATABASE).is_file():
        raise ParameterError(f"{home} has no journal of runs; --home names the folder of your runs")
    run = result.facts["run"]
    key = RunKey(study_hash=result.study.hash, run=run, participant=participant)
    with Journal.open(home) as journal:
        saved = journal.load(key)
        if saved is None or saved.outcome != DONE:
            raise JournalError(
                f"{key} is not finished in the home {home}: an archive is made when it is"
            )
        known = {("sent", item.slot_path, item.sha256) for item in journal.outgoing(key)}
        known |= {("taken", *pair) for pair in journal.accepted(key)}
        said = {(one["direction"], one["slot"], one["sha256"]) for one in result.messages}
        if known != said:
            raise JournalError(
                f"{result.where}: its transcript is not what the journal in {home} has sent and "
                "taken; have the folder written again with the command of the run"
            )
        if participant == SERVER:
            return {"lines": [], "why": NONE}
        return extract(Ledger(journal.connection), study=result.study, run=run, party=participant)


def _result_files(folder: Path) -> dict[str, bytes]:
    """Return `result.json` and the files that it names, and nothing else that lies there."""
    main = (folder / "result.json").read_bytes()
    names = json.loads(main)["files"]
    return {"result.json": main} | {name: (folder / name).read_bytes() for name in sorted(names)}
