"""Everything that needs all parties' rows in one place: pooling, yardsticks, data sets."""
