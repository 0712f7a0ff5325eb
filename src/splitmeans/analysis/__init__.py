"""A result in Python and in notebooks: report, tables, labels, names, plots."""
