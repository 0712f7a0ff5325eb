"""The commands of `python -m benchmarks`, one in each module; options and tables they share."""
