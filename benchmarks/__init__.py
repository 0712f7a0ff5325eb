"""Benchmarks of splitmeans, run from a copy of the repository: `python -m benchmarks --help`.

Thin code over the library that prints tables for people and writes JSON for machines. Measuring
code is in the modules here and in `paper/` and `speed/`; `commands/` has the command line. Nothing
here is installed with splitmeans.
"""
