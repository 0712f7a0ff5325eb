"""Tables and correlations of a synopsis, with intervals; they cost no privacy."""
