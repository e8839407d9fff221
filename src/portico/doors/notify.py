"""Tells systemd how things stand (sd_notify): ready, alive, stopping. Without systemd it says nothing."""

import os
import socket


class Notify:
    """`address`: the socket of NOTIFY_SOCKET; one that begins with `@` has no file."""

    def __init__(self, address: str = "") -> None:
        self._address = f"\0{address[1:]}" if address.startswith("@") else address

    @classmethod
    def from_environment(cls) -> "Notify":
        """The variable goes, so that no child of ours speaks in our name."""
        os.environ.pop(
            "WATCHDOG_USEC", None
        )  # we are alive once a second, which every watchdog of seconds is content with
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
            except OSError:  # nobody listens there: then nobody waits for it either
                self._address = ""
