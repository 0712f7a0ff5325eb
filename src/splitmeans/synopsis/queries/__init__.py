"""Questions to a synopsis, each answered with an interval; they cost no privacy."""
