"""``python -m coda.cli``: the command line, where the script ``coda`` is not on the path."""

from coda.cli import main

main()
