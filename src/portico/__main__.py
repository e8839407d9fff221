"""`python -m portico` is `portico`."""

from portico.start import main

main()
