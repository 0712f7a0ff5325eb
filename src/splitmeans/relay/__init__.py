"""The relay: a small web server that keeps sealed messages until they are fetched."""
