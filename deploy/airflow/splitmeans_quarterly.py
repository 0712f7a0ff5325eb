"""An Airflow example: a party's quarterly run, checked first and taken up again until it is done.

Exit codes decide what a retry is for: 3 (others are missing) and 4 (a mailbox or disk may be back)
are tried again, 1 and 2 fail at once because a person must look. Copy it into your dags folder and
set the variables at the top; the settings are those of a unit file (docs/guides/deploying.md).
"""

import os
import subprocess
from datetime import datetime, timedelta

from airflow.decorators import dag, task
from airflow.exceptions import AirflowException, AirflowFailException

STUDY = "/etc/splitmeans/customers.toml"
SETTINGS = "/etc/splitmeans/party-customers.env"
COMMAND = "/opt/splitmeans/bin/splitmeans"
MAY_PASS = (3, 4)


def settings(text: str) -> dict[str, str]:
    """Return the variables of a settings file."""
    lines = (line.strip() for line in text.splitlines())
    pairs = (line.partition("=") for line in lines if line and not line.startswith("#"))
    return {name: value.strip("\"'") for name, _, value in pairs}


def splitmeans(*arguments: str, run: str) -> None:
    """Run a command; raise what makes Airflow try again, or stop."""
    with open(SETTINGS) as file:
        env = os.environ | settings(file.read()) | {"SPLITMEANS_PARTY_RUN_RUN": run}
    done = subprocess.run([COMMAND, *arguments], env=env, check=False)
    if done.returncode in MAY_PASS:
        raise AirflowException(f"exit code {done.returncode}: tried again later")
    if done.returncode:
        raise AirflowFailException(f"exit code {done.returncode}: read the log")


@dag(
    schedule="0 6 2 1,4,7,10 *",
    start_date=datetime(2027, 1, 1),
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 48, "retry_delay": timedelta(minutes=30)},
)
def splitmeans_quarterly():  # type: ignore[no-untyped-def]
    """Check the data, then take part."""

    @task
    def check() -> None:
        splitmeans("party", "check", STUDY, run="check")

    @task
    def take_part(data_interval_end: datetime | None = None) -> None:
        assert data_interval_end is not None
        quarter = (data_interval_end.month + 2) // 3
        splitmeans("party", "run", STUDY, run=f"{data_interval_end.year}q{quarter}")

    check() >> take_part()


splitmeans_quarterly()
