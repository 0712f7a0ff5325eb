"""A party's own table: where it is, whether it fits the study, and ways to walk its rows."""
