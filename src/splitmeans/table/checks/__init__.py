"""Whether a table fits the study: all that is wrong with it is named at once."""
