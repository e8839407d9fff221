"""Notifies systemd of the service state (sd_notify): ready, alive, stopping. Does nothing without systemd."""

import os
import socket


class Notify:
    """`address` is the value of NOTIFY_SOCKET. A leading `@` means an abstract socket without a file."""

    def __init__(self, address: str = "") -> None:
        self._address = f"\0{address[1:]}" if address.startswith("@") else address

    @classmethod
    def from_environment(cls) -> "Notify":
        """Read NOTIFY_SOCKET and unset it, so that child processes cannot notify systemd in our name."""
        os.environ.pop("WATCHDOG_USEC", None)  # not needed: `alive` is sent every second, enough for any watchdog
        os.environ.pop("WATCHDOG_PID", None)
        return cls(os.environ.pop("NOTIFY_SOCKET", ""))

    def ready(self, status: str) -> None:
        self._send(f"READY=1\nSTATUS={status}")

    def alive(self) -> None:
        self._send("WATCHDOG=1")

    def stopping(self) -> None:
        self._send("STOPPING=1")

    def _send(self, text: str) -> None:
        if not self._address:
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as wire:
            try:
                wire.sendto(text.encode(), self._address)
            except OSError:  # no listener on the socket: stop sending
                self._address = ""
