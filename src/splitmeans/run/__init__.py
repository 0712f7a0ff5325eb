"""Carrying a run between organisations: mailboxes, the relay, and what must survive a crash."""
