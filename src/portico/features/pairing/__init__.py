"""Codes that log in a device, such as a phone. May import the core and the tokens of `people`."""
