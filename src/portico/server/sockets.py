"""The listening sockets of the host: loopback, an address, a Unix socket, or sockets passed by systemd."""

import contextlib
import os
import socket
import stat
from pathlib import Path

from portico.kernel.errors import BadRequest
from portico.server.settings import ServerSettings

_FIRST_FD = 3
"""The first file descriptor of sockets passed by systemd (sd_listen_fds)."""


def open_sockets(settings: ServerSettings) -> list[socket.socket]:
    if handed := from_systemd():
        return handed
    if settings.unix_socket:
        return [listen_unix(Path(settings.unix_socket).expanduser().absolute())]
    return listen(settings.host, settings.port)


def from_systemd() -> list[socket.socket]:
    """Return the sockets of a systemd socket unit. The variables are unset, so that no child process uses them."""
    pid, count = os.environ.pop("LISTEN_PID", ""), os.environ.pop("LISTEN_FDS", "")
    os.environ.pop("LISTEN_FDNAMES", None)
    if pid != str(os.getpid()) or not count.isdecimal():
        return []
    found = [socket.socket(fileno=_FIRST_FD + number) for number in range(int(count))]
    for each in found:
        each.setblocking(False)
        os.set_inheritable(each.fileno(), False)
        if each.family != socket.AF_UNIX:
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return found


def listen_unix(path: Path) -> socket.socket:
    """Open a Unix socket for its owner and group. A stale socket is replaced; one in use, or another file, is not."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if _is_left_over(path):
            path.unlink()
        made.bind(str(path))
        path.chmod(0o660)
        made.setblocking(False)
    except OSError as error:
        made.close()
        raise BadRequest(f"Cannot listen on {str(path)!r}: {error.strerror or error}.", field="unix_socket") from error
    return made


def _is_left_over(path: Path) -> bool:
    try:
        if not stat.S_ISSOCK(path.lstat().st_mode):
            return False
    except FileNotFoundError:
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return True
    return False


def listen(host: str, port: int) -> list[socket.socket]:
    """Listen on 127.0.0.1 and ::1 with the same port if the host is the default; else only on the given address."""
    first = _bind(host, port)
    sockets = [first]
    if host in ("127.0.0.1", "localhost"):
        with contextlib.suppress(OSError):  # no IPv6, or the port is in use there
            sockets.append(_bind_raw(socket.AF_INET6, "::1", first.getsockname()[1]))
    return sockets


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return _bind_raw(family, host, port)
    except OSError as error:
        raise BadRequest(
            f"Cannot listen on {host}:{port}: {error.strerror}. Choose another port with --port (0 picks a free one).",
            field="port",
        ) from error


def _bind_raw(family: socket.AddressFamily, host: str, port: int) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # inherited: small frames must not wait 40 ms
        if family is socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind((host, port))
        made.setblocking(False)
    except BaseException:  # the caller handles the error; the socket is closed here
        made.close()
        raise
    return made
