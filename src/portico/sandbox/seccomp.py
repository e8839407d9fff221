"""A system call filter for confined processes, as a BPF program.

The namespaces do not cover everything: TIOCSTI types into a terminal outside, the kernel keyring belongs to the user,
and virtual machine sockets (AF_VSOCK) have no network namespace. The filter refuses these with EPERM and allows the
rest. It is empty on processors for which the numbers of the system calls are not listed here.
"""

import errno
import platform
import struct

_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_LOAD, _EQUAL, _GREATER, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER, _ARCH, _FIRST, _SECOND = 0, 4, 16, 24
"""Offsets in `struct seccomp_data`: the lower halves of the arguments, on little-endian processors."""

_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_FAMILIES = (1, 2, 10, 16)
"""AF_UNIX, AF_INET, AF_INET6, AF_NETLINK (glibc lists the interfaces with it)."""

_NAMES = (
    "ioctl", "socket", "add_key", "request_key", "keyctl", "bpf", "perf_event_open", "userfaultfd", "io_uring_setup",
    "kexec_load", "open_by_handle_at", "name_to_handle_at", "quotactl", "acct", "swapon",
)  # fmt: skip
_NUMBERS: dict[str, tuple[int, dict[str, int]]] = {
    "x86_64": (
        0xC000003E,
        dict(zip(_NAMES, (16, 41, 248, 249, 250, 321, 298, 323, 425, 246, 304, 303, 179, 163, 167), strict=True)),
    ),
    "aarch64": (
        0xC00000B7,
        dict(zip(_NAMES, (29, 198, 217, 218, 219, 280, 241, 282, 425, 104, 265, 264, 60, 89, 224), strict=True)),
    ),
}
_X32 = 0x40000000
"""System calls of the x32 ABI have this bit; they would pass a filter by number."""


def filter_for(machine: str) -> bytes:
    """Return the program for a processor; empty if it is not known."""
    if machine not in _NUMBERS:
        return b""
    arch, numbers = _NUMBERS[machine]
    ioctl, socket = numbers["ioctl"], numbers["socket"]
    refused = [number for name, number in numbers.items() if name not in ("ioctl", "socket")]
    deny, allow = (_RETURN, 0, 0, _ERRNO | errno.EPERM), (_RETURN, 0, 0, _ALLOW)
    program = [
        (_LOAD, 0, 0, _ARCH),
        (_EQUAL, 1, 0, arch),
        deny,  # another ABI, such as 32 bit
        (_LOAD, 0, 0, _NUMBER),
        (_GREATER, 0, 1, _X32),
        deny,
        *(each for number in refused for each in ((_EQUAL, 0, 1, number), deny)),
        (_EQUAL, 0, 5, ioctl),
        (_LOAD, 0, 0, _SECOND),
        (_EQUAL, 1, 0, _TIOCSTI),
        (_EQUAL, 0, 1, _TIOCLINUX),
        deny,
        allow,
        (_EQUAL, 0, len(_FAMILIES) + 2, socket),
        (_LOAD, 0, 0, _FIRST),
        *((_EQUAL, len(_FAMILIES) - at, 0, family) for at, family in enumerate(_FAMILIES)),
        deny,
        allow,
    ]
    return b"".join(struct.pack("=HBBI", *each) for each in program)


FILTER = filter_for(platform.machine())
