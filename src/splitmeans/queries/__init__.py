"""Questions to a result in SQL, with intervals."""
