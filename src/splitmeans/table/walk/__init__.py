"""How a party walks its rows: in memory by threads, or in blocks on disk by processes."""
