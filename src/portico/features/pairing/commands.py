"""The command that pairs a device."""

from msgspec import Struct

from portico.kernel.commands import Command, Http, register


class PairingCode(Struct):
    code: str
    """8 letters in two groups, for people who type it."""
    url: str
    """What the QR code contains: the page that logs the device in. The code is in the fragment."""
    expires: int
    """Milliseconds since the epoch."""
    scopes: list[str]
    qr: list[str]
    """The QR code, one row of 0 and 1 per line."""
    note: str = ""
    """What was set up for the address, and how to undo that."""


class PairDevice(Command, frozen=True, tag="device.pair"):
    """Create a code that logs in one device within five minutes."""

    scope = "admin"
    lock = "feature"
    gives = PairingCode
    http = Http("POST", "/v1/devices/pair", 201)
    secret = True
    errors = ("conflict",)

    scopes: list[str] | None = None
    """What the device may do; by default everything that the caller may do, without `admin`."""


register(PairDevice)
