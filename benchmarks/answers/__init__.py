"""What people ask of a result and do with it, against the truth of the pooled rows."""
