"""The relay inside a sandbox: connects ports on its loopback interface with the listener of the host (`egress.py`).

    python -I -S relay.py SOCKET PROXY_PORT [PORT ...]

It runs as a plain file with the standard library only: `selectors` starts in 13 ms and needs 9 MB, `asyncio` 47 ms and
19 MB. A connection to PROXY_PORT is passed on unchanged; for one to another PORT the relay asks the listener for that
port of the host. A line `PORT` on its input adds a port, and the answer is `ok` or `error REASON`. It ends with its
input, so it never survives the host.
"""

import os
import selectors
import socket
import sys

CONNECTIONS = 512
"""At the same time; more wait in the kernel."""
BUFFER = 64 * 1024
"""Bytes that wait in one direction of a connection: a slow reader stops its writer."""
_HEAD = 16 * 1024


class RelayEnd:
    """One end of a connection: its socket, the bytes that wait to be written to it, and the other end."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.other: RelayEnd
        self.waiting = bytearray()
        self.at_eof = False
        """It sends no more."""
        self.is_shut = False
        """It was told that no more bytes follow."""
        self.reply: bytearray | None = None
        """Not None: the listener's answer to our CONNECT is being read; it is not for the program."""

    @property
    def events(self) -> int:
        reads = not self.at_eof and len(self.other.waiting) < BUFFER
        return (selectors.EVENT_READ if reads else 0) | (selectors.EVENT_WRITE if self.waiting else 0)


class LoopbackRelay:
    def __init__(self, listener: str) -> None:
        self._listener = listener
        self._selector = selectors.DefaultSelector()
        self._ports: list[tuple[socket.socket, int]] = []
        self._open = 0
        self._lines = b""
        self._buffer = memoryview(bytearray(BUFFER))

    def listen(self, port: int, *, proxy: bool = False) -> None:
        """Listen on the loopback addresses. IPv6 may be disabled."""
        for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
            try:
                server = socket.create_server((address, port), family=family, backlog=128)
            except OSError:
                if family == socket.AF_INET:
                    raise
                continue
            server.setblocking(False)
            self._ports.append((server, 0 if proxy else port))
            self._selector.register(server, selectors.EVENT_READ, self._ports[-1])

    def run(self) -> None:
        os.set_blocking(0, False)
        self._selector.register(0, selectors.EVENT_READ, None)
        while True:
            for key, events in self._selector.select():
                if key.data is None:
                    if not self._control():
                        return
                elif isinstance(key.data, RelayEnd):
                    self._serve(key.data, events)
                else:
                    self._accept(*key.data)

    def _control(self) -> bool:
        """Read lines from the host; return False when it has gone."""
        try:
            data = os.read(0, 4096)
        except BlockingIOError:
            return True
        *lines, self._lines = (self._lines + data).split(b"\n")
        for line in lines:
            try:
                self.listen(int(line))
                answer = "ok"
            except (ValueError, OverflowError, OSError) as error:
                answer = f"error {error}"
            print(answer, flush=True)
        return bool(data)

    def _accept(self, server: socket.socket, port: int) -> None:
        try:
            program = server.accept()[0]
        except OSError:
            return
        listener = socket.socket(socket.AF_UNIX)
        try:
            listener.connect(self._listener)
        except OSError:  # the host has closed this sandbox
            program.close()
            listener.close()
            return
        listener.setblocking(False)
        program.setblocking(False)
        program.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        near, far = RelayEnd(program), RelayEnd(listener)
        near.other, far.other = far, near
        if port:
            far.reply = bytearray()
            far.waiting += b"CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % (port, port)
        for end in (near, far):
            self._selector.register(end.sock, selectors.EVENT_READ, end)
        self._watch(far)
        self._count(1)

    def _count(self, change: int) -> None:
        """Stop accepting at the limit of connections, and start again below it."""
        was_full, self._open = self._open >= CONNECTIONS, self._open + change
        if was_full is not (is_full := self._open >= CONNECTIONS):
            for data in self._ports:
                if is_full:
                    self._selector.unregister(data[0])
                else:
                    self._selector.register(data[0], selectors.EVENT_READ, data)

    def _serve(self, end: RelayEnd, events: int) -> None:
        if end.sock.fileno() < 0:
            return  # closed earlier in this round
        try:
            if events == selectors.EVENT_READ and self._pass_on(end):
                return
            if events & selectors.EVENT_WRITE:
                self._write(end)
            if events & selectors.EVENT_READ:
                self._read(end)
        except BlockingIOError:
            pass
        except OSError:
            self._close(end)
            return
        if end.is_shut and end.other.is_shut:
            self._close(end)
            return
        self._watch(end)
        self._watch(end.other)

    def _pass_on(self, end: RelayEnd) -> bool:
        """Send what has arrived without storing it, which is the usual case. Return False if something is left to do:
        then `_read` and `_write` continue."""
        if end.reply is not None or end.other.waiting:
            return False
        size = end.sock.recv_into(self._buffer)
        if not size:
            return False  # at its end, which `_read` finds again
        data = self._buffer[:size]
        try:
            sent = end.other.sock.send(data)
        except BlockingIOError:
            sent = 0
        if sent < size:
            end.other.waiting += data[sent:]
            self._watch(end)
            self._watch(end.other)
        return True

    def _read(self, end: RelayEnd) -> None:
        data = end.sock.recv(BUFFER)
        end.at_eof = not data
        if end.reply is not None:
            data = self._after_reply(end, data)
        end.other.waiting += data
        self._write(end.other)

    def _after_reply(self, end: RelayEnd, data: bytes) -> bytes:
        """Remove the listener's answer to our CONNECT; return the bytes after it. Without a 200 the program's
        connection is closed."""
        assert end.reply is not None
        end.reply += data
        head, found, rest = bytes(end.reply).partition(b"\r\n\r\n")
        if not found:
            if len(end.reply) > _HEAD or end.at_eof:
                raise ConnectionRefusedError
            return b""
        if head.split(b" ", 2)[1:2] != [b"200"]:
            raise ConnectionRefusedError
        end.reply = None
        return rest

    def _write(self, end: RelayEnd) -> None:
        if end.waiting:
            try:
                del end.waiting[: end.sock.send(end.waiting)]
            except BlockingIOError:
                return
        if end.other.at_eof and not end.waiting and not end.is_shut:
            end.is_shut = True
            end.sock.shutdown(socket.SHUT_WR)

    def _watch(self, end: RelayEnd) -> None:
        """Wait for what this end can do now."""
        wanted, fd = end.events, end.sock.fileno()
        known = self._selector.get_map().get(fd)
        if known is None:
            if wanted:
                self._selector.register(fd, wanted, end)
        elif not wanted:
            self._selector.unregister(fd)
        elif known.events != wanted:
            self._selector.modify(fd, wanted, end)

    def _close(self, end: RelayEnd) -> None:
        for each in (end, end.other):
            if self._selector.get_map().get(each.sock.fileno()) is not None:
                self._selector.unregister(each.sock)
            each.sock.close()
        self._count(-1)


def main(listener: str, proxy: str, *ports: str) -> None:
    relay = LoopbackRelay(listener)
    relay.listen(int(proxy), proxy=True)
    for port in ports:
        relay.listen(int(port))
    print("ready", flush=True)
    relay.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
