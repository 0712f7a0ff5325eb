"""`splitmeans study`: write, check, rehearse, show and approve what all participants agree on."""

import json
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import typer
from rich.table import Table

from splitmeans.cli.ask_study import ask_for_study
from splitmeans.cli.console import Quiet, check_file, err, out, print_text
from splitmeans.cli.dpia import dpia
from splitmeans.cli.home import HOME_OPTION
from splitmeans.cli.keys import rekey, rekeyed
from splitmeans.cli.run_options import say
from splitmeans.cli.stopping import asked
from splitmeans.cli.study_words import describe_column, describe_ids, describe_runs
from splitmeans.errors import ParameterError, UnaccountableBudget
from splitmeans.rehearsal.passed import rehearse_once
from splitmeans.run.journal import Journal
from splitmeans.run.own_keys import check_not_revoked
from splitmeans.study import DEFAULT_DELTA, EVERYONE, Study
from splitmeans.study.id_rules import ID_TYPES
from splitmeans.study.options import TOWARDS_SERVER
from splitmeans.study.parties import OPEN, PRIVATE
from splitmeans.wire.identity import PublicIdentity, spoken
from splitmeans.wire.slot import SERVER

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Write, check, rehearse, show and approve a study.",
)
app.command()(rekey)

app.command()(dpia)

_FILE = typer.Argument(help="The study file.")
_JSON = typer.Option(False, "--json", help="Print JSON.")

_USERS = {
    "equal": "the same at every party",
    "partial": "some of them at some parties only",
}
# Of a study with partial user sets.
_WHOSE = {None: "users at all parties", EVERYONE: "everyone at one party or more"}


@app.command()
def new(
    output: Path = typer.Option(Path("study.toml"), "--output", "-o", help="File to write."),
    name: str | None = typer.Option(None, help="What people call the study."),
    clusters: int = typer.Option(5, help="Number of segments wanted."),
    counts_only: bool = typer.Option(
        False,
        "--counts-only",
        help="No segments: only how many users are at which parties. No column is read; needs "
        "--partial and --id-type.",
    ),
    epsilon: float = typer.Option(
        1.0, help="Bound on what the server and readers learn of a user, from all runs together."
    ),
    delta: float = typer.Option(
        DEFAULT_DELTA, help="Additive slack of that bound; must be below 1 / users."
    ),
    party_epsilon: float | None = typer.Option(
        None, help="Also bound what another party learns; without it `study check` says how much."
    ),
    users: int | None = typer.Option(
        None, help="Roughly how many users, if the parties may say so; public."
    ),
    partial: bool = typer.Option(
        False, "--partial", help="Some users are at some parties only; by default all are at all."
    ),
    party: list[str] = typer.Option(
        [], help="NAME=FILE with the party's public key (`keys new`); once for each party."
    ),
    column: list[str] = typer.Option(
        [],
        help="PARTY:COLUMN:LOW:HIGH for numbers, PARTY:COLUMN:private for numbers whose bounds the "
        "run learns, PARTY:COLUMN:a|b|c for categories, PARTY:COLUMN:open for categories that the "
        "run learns.",
    ),
    id_column: list[str] = typer.Option([], help="PARTY:COLUMN that identifies users; default id."),
    id_type: str | None = typer.Option(
        None,
        help="How ids are written, at all parties: as-is, text, caseless, integer, uuid, email or "
        "phone. By default as-is; with --partial it must be given.",
    ),
    server_key: Path | None = typer.Option(None, help="File with the server's public key."),
    scaling: str | None = typer.Option(
        None, help='"equal": every column counts the same in distances, whatever its bounds.'
    ),
    detail: bool = typer.Option(
        False, "--detail", help="Parties also release how columns spread within their clusters."
    ),
    renew: int | None = typer.Option(
        None, help="Number of runs that share this budget, for data that changes over time."
    ),
    every: str | None = typer.Option(
        None, help="With --renew: about how long from one run to the next, such as '3 months'."
    ),
) -> None:
    """Write a study file, from options or, without any, by asking.

    Examples: splitmeans study new --name customers --party bank=bank.pub --party shop=shop.pub
    --column bank:income:0:9000 --column shop:visits:0:30 --server-key server.pub

    splitmeans study new --counts-only --partial --id-type email --party bank=bank.pub --party
    shop=shop.pub --server-key server.pub
    """
    # Imported where it is used: accounting takes long to load, and the other commands need none.
    from splitmeans.plan.settle import make_plan

    if output.exists():
        raise ParameterError(f"{output} exists; give another name with -o, or remove it")
    check_file(output)
    if not party:
        if (
            name
            or column
            or id_column
            or server_key
            or counts_only
            or renew
            or every
            or scaling
            or detail
        ):
            raise ParameterError(
                "--party is missing: give it once for each party, or no option at all to be asked"
            )
        study = ask_for_study()
    else:
        if partial and id_type is None:
            raise ParameterError(
                f"--partial needs --id-type ({', '.join(ID_TYPES[:-1])} or {ID_TYPES[-1]}): a "
                "person whose id is written differently at two parties would count as two people, "
                "for whom the stated epsilon does not hold"
            )
        if counts_only:
            _check_counts_only(column, partial=partial)
        budget = {"epsilon": epsilon, "delta": delta}
        if party_epsilon is not None:
            budget["party_epsilon"] = party_epsilon
        if every is not None and renew is None:
            raise ParameterError("--every needs --renew, the number of runs")
        more: dict[str, Any] = {} if scaling is None else {"scaling": scaling}
        if detail:
            more["detail"] = {}
        if renew is not None:
            more["renewal"] = {"runs": renew} | ({} if every is None else {"every": every})
        study = _from_options(
            **more,
            name=name or output.stem,
            n_clusters=1 if counts_only else clusters,
            budget=budget,
            expected_users=users,
            user_sets="partial" if partial else "equal",
            ids={"type": id_type or "as-is"},
            parties=party,
            columns=column,
            id_columns=id_column,
            server_key=server_key,
        )
    try:
        make_plan(study)
    except UnaccountableBudget as problem:
        # It begins with the name of the figure, which is an option's unless it was asked for.
        raise ParameterError(f"{'--' if party else ''}{problem}".replace("_", "-")) from None
    output.write_text(study.to_toml(), encoding="utf-8")
    err.print(f"wrote {output}; all participants now compare these digits:", markup=False)
    typer.echo(spoken(study.hash))


@app.command()
def check(study: Path = _FILE, as_json: bool = _JSON) -> None:
    """Check a study file and what its run would cost, before any data is touched.

    Example: splitmeans study check study.toml
    """
    from splitmeans.plan.facts import PrivacyFacts

    agreed = Study.read(study)
    try:
        facts = PrivacyFacts.for_study(agreed)
    except UnaccountableBudget as problem:
        raise ParameterError(f"{study}: {problem}") from None
    if as_json:
        typer.echo(json.dumps(facts.to_mapping(), indent=1))
    else:
        print_text(out, facts.statement())
    _warn(agreed)
    if not agreed.public_keys:
        err.print("note: the study has no keys, so it can only be simulated", markup=False)


@app.command("rehearse")
def hold_rehearsal(study: Path = _FILE, quiet: Quiet = False) -> None:
    """Run the whole study on made-up tables, in seconds: what would fail later fails here.

    Every participant is played in this process, with the study's parties, columns, names and
    methods, from the keys to the report. No data of yours is opened, nothing is sent and nothing is
    charged. `study approve`, `party run` and `server run` do the same once for each study.

    Example: splitmeans study rehearse study.toml
    """
    from splitmeans.rehearsal.rehearse import rehearse

    done = rehearse(Study.read(study), say=say)
    typer.echo(f"passed: {done.users:,} made-up users, {done.seconds:.1f} seconds, nothing charged")


@app.command()
def show(study: Path = _FILE, as_json: bool = _JSON) -> None:
    """Show who takes part with what, and the digits to compare over the phone.

    Example: splitmeans study show study.toml
    """
    agreed = Study.read(study)
    if as_json:
        facts = {"hash": agreed.hash, "digits": spoken(agreed.hash), "study": agreed.to_mapping()}
        typer.echo(json.dumps(facts, indent=1))
        return
    table = Table(box=None, pad_edge=False, title=f"study {agreed.name}", title_justify="left")
    for heading in ("participant", "columns with their bounds", "users by", "fingerprint of key"):
        table.add_column(heading, overflow="fold")
    keys = {
        who: PublicIdentity.from_text(text).fingerprint for who, text in agreed.public_keys.items()
    }
    for party in agreed.parties:
        columns = "\n".join(describe_column(column) for column in party.columns) or "none is read"
        key = keys.get(party.name, "none")
        table.add_row(party.name, columns, party.id_column, key)
    table.add_row(SERVER, "", "", keys.get(SERVER, "none"))
    out.print(table)
    whose = "" if agreed.user_sets == "equal" else f" of {_WHOSE[agreed.population]}"
    wanted = f"{agreed.n_clusters}{whose}"
    if agreed.counts_only:
        wanted = "none: counts alone, how many users are at which parties"
    out.print(f"segments  {wanted}", markup=False)
    if agreed.scaling is not None:
        out.print("columns   each counts the same in distances, times its weight", markup=False)
    if agreed.detail is not None:
        out.print(
            "detail    parties also release how their columns spread within clusters, from "
            f"{agreed.detail.share:.0%} of what local clustering may cost",
            markup=False,
        )
    users = agreed.expected_users
    about = "number not said" if users is None else f"about {users}"
    out.print(f"users     {about}, {_USERS[agreed.user_sets]}", markup=False)
    out.print(f"ids       {describe_ids(agreed)}", markup=False)
    out.print(
        f"budget    epsilon {agreed.budget.epsilon:g}, delta {agreed.budget.delta:g} "
        f"{TOWARDS_SERVER} ({agreed.membership}){describe_runs(agreed)}",
        markup=False,
    )
    out.print(f"hash      {agreed.hash}", markup=False)
    out.print(f"digits    {spoken(agreed.hash)}", markup=False)


@app.command()
def approve(
    study: Path = _FILE,
    home: Path = HOME_OPTION,
    digits: str | None = typer.Option(
        None, "--digits", help="The digits that the other participants read to you."
    ),
    renewal: list[Path] = typer.Option(
        [],
        "--renewal",
        help="A key renewal: approves without digits what differs from an approved study in "
        "nothing but keys that the old ones have signed. May be repeated.",
    ),
) -> None:
    """Agree to a study: your party then runs exactly this one and refuses every other.

    The study is rehearsed first (`study rehearse`), unless that was done from this home.

    Example: splitmeans study approve study.toml --home bank
    """
    agreed = Study.read(study)
    own = spoken(agreed.hash)
    _warn(agreed)
    check_not_revoked(home.expanduser(), agreed)
    if renewal and digits is None:
        _check_renewed(agreed, renewal, home.expanduser())
    elif digits is None:
        err.print(f"{agreed.name}: {own}", markup=False)
        same = asked(
            partial(typer.confirm, "Do all participants have the same digits?", err=True),
            instead="not approved, there was no answer; or give the digits with --digits",
        )
        if not same:
            raise ParameterError("not approved; find out who has another file")
    elif "".join(digits.split()) != "".join(own.split()):
        raise ParameterError(f"{study} has the digits {own}, which are not those you gave")
    # Before the journal is opened: a rehearsal takes seconds, and another run may need it.
    own_home = home.expanduser()
    passed = rehearse_once(agreed, own_home, say=say)
    with Journal.open(own_home) as journal:
        journal.approve(agreed.hash, agreed.to_toml())
    say(f"approved {agreed.name} at {home}; its rehearsal passed on {passed}")


def _check_renewed(study: Study, renewals: list[Path], home: Path) -> None:
    """Check that a study is an approved one with other keys, which the old ones have signed."""
    with Journal.open(home) as journal:
        known = [Study.from_toml(text) for text in journal.approved_texts().values()]
    for old in known:
        if old.name == study.name:
            with suppress(ParameterError):
                if rekeyed(old, renewals, home).hash == study.hash:
                    return
    raise ParameterError(
        f"study {study.name!r} is none that was approved at {home} with the keys of these renewals "
        "and nothing else changed; compare the digits with the other participants (--digits)"
    )


def _warn(study: Study) -> None:
    """Say what noise will hide; `splitmeans plan` says more."""
    from splitmeans.forecasting.warnings import plan_warnings
    from splitmeans.plan.settle import make_plan

    for warning in plan_warnings(make_plan(study), users=study.assumed_users):
        print_text(err, f"WARNING: {warning}")


def _check_counts_only(columns: list[str], *, partial: bool) -> None:
    if columns:
        raise ParameterError(
            f"--counts-only reads no column; leave --column {columns[0]!r} out, or --counts-only"
        )
    if not partial:
        raise ParameterError(
            "--counts-only needs --partial: with the same users at every party there is nothing to "
            "count"
        )


def _from_options(
    *,
    parties: list[str],
    columns: list[str],
    id_columns: list[str],
    server_key: Path | None,
    **facts: Any,
) -> Study:
    described: dict[str, dict[str, Any]] = {}
    for text in parties:
        who, _, file = text.partition("=")
        described[who] = {"name": who, "columns": []}
        if file:
            described[who]["public_key"] = read_key(Path(file))
    for text in columns:
        who, column = parse_column(text)
        if who not in described:
            raise ParameterError(f"--column {text!r} names a party that --party does not")
        described[who]["columns"].append(column)
    for text in id_columns:
        who, _, column_name = text.partition(":")
        if who not in described:
            raise ParameterError(f"--id-column {text!r} names a party that --party does not")
        described[who]["id_column"] = column_name
    mapping = {**facts, "parties": list(described.values())}
    if server_key is not None:
        mapping["server_key"] = read_key(server_key)
    return Study.from_mapping(mapping)


def parse_column(text: str) -> tuple[str, dict[str, Any]]:
    """Return the party and the column that "PARTY:COLUMN:..." describes."""
    parts = text.split(":")
    if len(parts) == 3 and "|" in parts[2]:
        return parts[0], {"name": parts[1], "categories": parts[2].split("|")}
    if len(parts) == 3 and parts[2] == PRIVATE:
        return parts[0], {"name": parts[1], "bounds": PRIVATE}
    if len(parts) == 3 and parts[2] == OPEN:
        return parts[0], {"name": parts[1], "categories": OPEN}
    try:
        who, name, low, high = parts
        return who, {"name": name, "low": float(low), "high": float(high)}
    except ValueError:
        raise ParameterError(
            "--column must be PARTY:COLUMN:LOW:HIGH, PARTY:COLUMN:private, PARTY:COLUMN:a|b|c or "
            f"PARTY:COLUMN:open, got {text!r}"
        ) from None


def read_key(path: Path) -> str:
    """Read a public key from a file that `keys new` printed."""
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "not a text file"
        raise ParameterError(f"{path}: no public key can be read ({reason})") from problem
