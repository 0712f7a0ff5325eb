"""How a party walks its table: in memory, in blocks on disk, or by the workers of Spark."""
