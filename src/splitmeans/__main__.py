"""`python -m splitmeans` is the `splitmeans` command."""

from splitmeans.cli import main

if __name__ == "__main__":
    main()
