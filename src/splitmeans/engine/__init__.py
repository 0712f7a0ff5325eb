"""How a party walks its table: in memory, or in row groups of a file that memory cannot hold."""
