"""What the users may have been instead: replicates of a synopsis, for intervals of any figure."""
