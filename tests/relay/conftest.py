"""The keys and the relay of `tests/mailbox`."""

from tests.mailbox.conftest import keys, relay

__all__ = ["keys", "relay"]
