"""`splitmeans result similar` and `result audience`: lists of a party's own users."""

from pathlib import Path

import typer

from splitmeans.cli.console import Quiet, err
from splitmeans.cli.data_options import ALLOW_CLIPPING, DATA, QUERY, QUERY_FILE, chosen_query
from splitmeans.cli.result_options import RESULT, K, check_table_file
from splitmeans.figures import percent
from splitmeans.result.result import Result
from splitmeans.study import EVERYONE

_PARTY = typer.Option(..., "--party", help="Your name in the study.")
_OUTPUT = typer.Option(..., "--output", "-o", help="File to write: .parquet or .csv.")


def similar(
    result: Path = RESULT,
    party: str = _PARTY,
    data: str = DATA,
    seed: Path = typer.Option(
        ..., "--seed", help="File of ids (.csv or .parquet): users whose like you look for."
    ),
    output: Path = _OUTPUT,
    most: int | None = typer.Option(None, "--most", min=1, help="Write at most so many users."),
    query: str | None = QUERY,
    query_file: Path | None = QUERY_FILE,
    k: int | None = K,
    allow_clipping: bool = ALLOW_CLIPPING,
    quiet: Quiet = False,
) -> None:
    """Rank your own users by how alike they are to a seed list, as far as segments tell.

    The lift says how many times likelier than an average user somebody is to be of the seeds'
    kind. Works on your machine; nothing is sent, and the file can be read by you alone.

    Example: splitmeans result similar my-result --party bank --data bank.parquet --seed buyers.csv
    -o like-buyers.csv
    """
    from splitmeans.cli.progress import rows_progress
    from splitmeans.party.similar import scoring_segments
    from splitmeans.party.similar_file import write_similar

    check_table_file(output)
    read = Result.read(result)
    segments = scoring_segments(read, k)
    with rows_progress() as progress:
        users, seeds = write_similar(
            read,
            data,
            output,
            party=party,
            seed=seed,
            segments=segments,
            progress=progress,
            query=chosen_query(query, query_file),
            allow_clipping=allow_clipping,
            most=most,
        )
    _say(
        f"{users:,} users, the likest to {seeds:,} seeds first, scored by {segments.k} segments; "
        f"keep {output} as safe as the data"
    )
    typer.echo(output)


def audience(
    result: Path = RESULT,
    party: str = _PARTY,
    data: str = DATA,
    segments: str = typer.Option(
        ..., "--segments", help="Letters or names of segments, separated by commas: A,C."
    ),
    at_least: float = typer.Option(
        0.5, "--at-least", help="Probability of being in one of them from which on users are taken."
    ),
    output: Path = _OUTPUT,
    query: str | None = QUERY,
    query_file: Path | None = QUERY_FILE,
    k: int | None = K,
    allow_clipping: bool = ALLOW_CLIPPING,
    quiet: Quiet = False,
) -> None:
    """Write a list of your own users who are probably in some segments, ids as your table has them.

    Says how many there are, how many of them are expected to be right, and how many of all in the
    segments they are. Works on your machine; nothing is sent.

    Example: splitmeans result audience my-result --party bank --data bank.parquet --segments A,C
    --at-least 0.7 -o campaign.csv
    """
    from splitmeans.cli.progress import rows_progress
    from splitmeans.party.similar_file import write_audience

    check_table_file(output)
    read = Result.read(result)
    with rows_progress() as progress:
        found = write_audience(
            read,
            data,
            output,
            party=party,
            wanted=segments.split(","),
            at_least=at_least,
            segments=read.segments(k),
            progress=progress,
            query=chosen_query(query, query_file),
            allow_clipping=allow_clipping,
        )
    _say(
        f"{found.users:,} of {found.rows:,} users; about {found.right:,.0f} of them "
        f"({percent(found.precision)}) are expected to be in the segments, which is "
        f"{percent(found.reach)} of all your users who are; keep {output} as safe as the data"
    )
    if read.study.population != EVERYONE:
        _say(
            "note: the segments are of users at all parties, and nobody knows which of yours are: "
            "what is expected to be right holds for those, of others it says where they would be"
        )
    typer.echo(output)


def _say(text: str) -> None:
    err.print(text, markup=False, soft_wrap=True)
