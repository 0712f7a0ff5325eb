"""How parties tell which user is in which cluster: one folder per method."""
