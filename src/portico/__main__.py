"""`python -m portico` is `portico`."""

from portico.cli import main

main()
