"""Names of people, as sessions and shares know them."""

EVERYONE = "*"
HOST_OWNER = "owner"
"""To whom belongs what tokens without a person start, on a host that has people."""
