"""Health check of a container: ask the relay, if this container runs one.

Which command runs is read from process 1; the port from its option or its variable. A relay's
certificate is for the outside, so it is not looked at here: the question stays in the container.
"""

import os
import ssl
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path


def relay_url(arguments: Sequence[str], environ: Mapping[str, str]) -> str | None:
    """Return where this container's relay says how it is; None if it runs no relay."""
    if "relay" not in arguments or "serve" not in arguments:
        return None
    port = environ.get("SPLITMEANS_RELAY_SERVE_PORT") or "8443"
    is_plain = environ.get("SPLITMEANS_RELAY_SERVE_INSECURE", "").lower() in ("1", "true", "yes")
    for position, argument in enumerate(arguments):
        if argument == "--port":
            port = arguments[position + 1]
        elif argument.startswith("--port="):
            port = argument.partition("=")[2]
        is_plain = is_plain or argument == "--insecure"
    return f"{'http' if is_plain else 'https'}://127.0.0.1:{port}/health"


def is_healthy(url: str) -> bool:
    """Ask once."""
    trust_all = ssl.create_default_context()
    trust_all.check_hostname, trust_all.verify_mode = False, ssl.CERT_NONE
    try:
        with urllib.request.urlopen(url, timeout=4, context=trust_all) as answer:
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError):
        return False


def main() -> int:
    """Return 0 if all is well."""
    arguments = Path("/proc/1/cmdline").read_bytes().decode(errors="replace").split("\0")
    url = relay_url(arguments, os.environ)
    return 0 if url is None or is_healthy(url) else 1


if __name__ == "__main__":
    sys.exit(main())
