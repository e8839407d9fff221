"""`portico service`: let systemd run the host."""

import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from portico.cli.output import HomeOption, JsonFlag, print_json
from portico.kernel.errors import BadRequest
from portico.server.home import Home

app = typer.Typer(help="Install and remove the service of systemd.", no_args_is_help=True)

NAME = "portico.service"
SYSTEM = Path("/etc/systemd/system")
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_WATCHDOG_SECONDS = 30
"""The host notifies the watchdog once a second; a full disk or a busy machine may delay it by some seconds."""

# Settings of both units. Agents run inside the unit and do what developers do: they compile, start programs and use the
# network. So nothing here forbids that, and the host's own files are protected only from other users. One of them that
# runs out of memory does not end the others (OOMPolicy). The runtime directory, /run/portico, is for the socket that a
# proxy opens: the rest of /run is read-only for the unit.
_COMMON = """\
Type=notify
ExecStart={command}
WorkingDirectory={folder}
Environment={home}
Environment={path}
Restart=on-failure
RestartSec=2
WatchdogSec={watchdog}
TimeoutStopSec=30
KillMode=mixed
OOMPolicy=continue
LimitNOFILE=65536
UMask=0077
NoNewPrivileges=yes
"""
_HARDENED = """\
User={user}
RuntimeDirectory=portico
RuntimeDirectoryMode=0750
ProtectSystem=strict
ReadWritePaths={writable}
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
RestrictNamespaces=user mnt pid net uts ipc
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
CapabilityBoundingSet=
AmbientCapabilities=
SystemCallArchitectures=native
SystemCallFilter=@system-service @mount
SystemCallErrorNumber=EPERM
RemoveIPC=yes
"""


def unit(*, home: Path, folder: Path, user: pwd.struct_passwd | None = None) -> str:
    """Return the text of the unit: for the current user, or with `user` a hardened one for the whole machine."""
    system = user is not None
    _check_lines(home=str(home), workspace=str(folder), path=_search_path(user))
    command = [sys.executable, "-m", "portico", "serve"]
    lines = _COMMON.format(
        command=" ".join(_quoted(word).replace("$", "$$") for word in command),
        folder=_escaped(folder),
        home=_quoted(f"PORTICO_HOME={home}"),
        path=_quoted(f"PATH={_search_path(user)}"),
        watchdog=_WATCHDOG_SECONDS,
    )
    if user is not None:  # agents keep their own files in the user's home folder
        writable = " ".join(_quoted(f"-{path}") for path in dict.fromkeys([user.pw_dir, str(home), str(folder)]))
        lines += _HARDENED.format(user=user.pw_name, writable=writable)
    after = "network-online.target" if system else "default.target"
    head = "Description=Portico, the host for coding agents\n" + (f"After={after}\nWants={after}\n" if system else "")
    target = "multi-user.target" if system else "default.target"
    return f"[Unit]\n{head}\n[Service]\n{lines}\n[Install]\nWantedBy={target}\n"


def _check_lines(**values: str) -> None:
    """The attack: a value with a line break adds lines to the unit, such as another ExecStart. A backslash at the end
    would join the next line."""
    for name, value in values.items():
        if any(ord(char) < 32 or ord(char) == 127 for char in value) or value.endswith("\\"):
            shown = "The variable PATH" if name == "path" else f"--{name}"
            raise BadRequest(f"{shown} has a control character or ends with a backslash: {value!r}.", field=name)


def _search_path(user: pwd.struct_passwd | None) -> str:
    """Where agents are looked for: systemd's own PATH has none that a person has installed for themselves. Of another
    user only the usual folder is known."""
    return os.environ.get("PATH", os.defpath) if user is None else f"{user.pw_dir}/.local/bin:{_SYSTEM_PATH}"


def _escaped(path: Path) -> str:
    return str(path).replace("%", "%%")


def _quoted(word: str) -> str:
    """Quote for systemd, as it splits a line into words."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"' if any(c in word for c in " \t\"'\\;") or not word else escaped


@app.command()
def install(
    system: Annotated[bool, typer.Option("--system", help="For the machine, hardened; needs root.")] = False,
    user: Annotated[str | None, typer.Option(help="With --system: whom it runs as.")] = None,
    folder: Annotated[Path | None, typer.Option("--workspace", help="The project folder. [home folder]")] = None,
    only_print: Annotated[bool, typer.Option("--print", help="Print the unit and write nothing.")] = False,
    as_json: JsonFlag = False,
    home: HomeOption = None,
) -> None:
    """Write a unit for systemd: it starts the host, watches it, and starts it again when it fails.

    Example: portico service install --workspace ~/code
    """
    whom = _user(user) if system else None
    if user is not None and not system:
        raise BadRequest("--user goes with --system; a user's own service runs as that user.", field="user")
    person = Path(whom.pw_dir) if whom is not None else Path.home()
    place = (
        home.absolute()
        if home is not None
        else person / ".local" / "share" / "portico"
        if system
        else Home.default().path
    )
    workspace = (folder or person).expanduser().absolute()
    text = unit(home=place, folder=workspace, user=whom)
    target = (SYSTEM if system else Path.home() / ".config" / "systemd" / "user") / NAME
    if only_print:
        print_json({"path": str(target), "unit": text}) if as_json else print(text, end="")
        return
    if not workspace.is_dir():  # systemd would try it again and again
        raise BadRequest(f"The workspace {str(workspace)!r} is not a folder. Create it first.", field="workspace")
    _write(target, text)
    manager = "systemctl" if system else "systemctl --user"
    follow = [f"{manager} daemon-reload", f"{manager} enable --now portico"]
    if not system:
        follow.append("loginctl enable-linger    # it also runs while you are logged out")
    if as_json:
        print_json({"path": str(target), "next": follow})
    else:
        print(f"Wrote {target}. Then:", *follow, sep="\n  ", file=sys.stderr)


def _user(name: str | None) -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(name) if name is not None else pwd.getpwuid(os.getuid())
    except KeyError:
        hint = f"Make it with: useradd --create-home {name}"
        raise BadRequest(f"There is no user {name!r}. {hint}", field="user") from None


def _write(target: Path, text: str) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")
    except OSError as error:
        raise BadRequest(f"{str(target)!r} cannot be written: {error.strerror}.", field="system") from error


@app.command()
def remove(
    system: Annotated[bool, typer.Option("--system", help="The machine's unit; needs root.")] = False,
    as_json: JsonFlag = False,
    home: HomeOption = None,
) -> None:
    """Stop the service and remove its unit. The home folder stays.

    Example: portico service remove
    """
    target = (SYSTEM if system else Path.home() / ".config" / "systemd" / "user") / NAME
    if not target.exists():
        raise BadRequest(f"There is no unit {str(target)!r}.", field="system")
    manager = ["systemctl"] if system else ["systemctl", "--user"]
    trouble = _systemctl([*manager, "disable", "--now", "portico"])
    target.unlink()
    trouble = trouble or _systemctl([*manager, "daemon-reload"])
    if as_json:
        print_json({"removed": str(target), "trouble": trouble})
        return
    print(f"Removed {target}", file=sys.stderr)
    if trouble:
        print(f"The host may still run, because {trouble}", file=sys.stderr)


def _systemctl(command: list[str]) -> str:
    """Return why it failed. Empty: it succeeded, or there is no systemd."""
    if not shutil.which(command[0]):
        return ""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    reason = " ".join(done.stderr.split()) or f"its exit code is {done.returncode}"
    return f"'{' '.join(command)}' failed: {reason}" if done.returncode else ""
