"""The policy of one sandbox as plain data, and the pure function that derives it from a session and the settings."""

import os
from typing import Literal

from msgspec import Struct

from portico.sandbox.network import Network
from portico.sandbox.presets import hosts_of
from portico.sandbox.vendors import Vendor

Mode = Literal["off", "project", "strict"]
MODES: tuple[Mode, ...] = ("off", "project", "strict")

MIB = 1024 * 1024


class Limits(Struct, frozen=True):
    """The most that the processes of one sandbox may use; 0: no limit."""

    memory: int = 0
    """Bytes of data of one process; with control groups, of all processes of the sandbox together."""
    processes: int = 0
    """Processes of the whole sandbox."""
    files: int = 4096
    """Open descriptors of one process. The default of a shell is 1024, and watchers of large projects need more."""
    tmp: int = 1024 * MIB
    """Bytes of `/tmp` and the home folder together. They are in memory."""


class Namespaces(Struct, frozen=True):
    """The namespaces of a running sandbox that its processes join, as files that the host keeps open."""

    user: str
    net: str
    mount: str
    scratch: str
    """The folder with `tmp` and `home`, which exists only in these namespaces."""
    groups: tuple[str, ...] = ()
    """Control groups that its processes enter: the files `cgroup.procs`."""


class Policy(Struct, frozen=True):
    mode: Literal["project", "strict"]
    folder: str
    """The working folder, which is writable."""
    home: str
    """The home folder of the user. Inside it is empty except for the paths below."""
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    """Besides the working folder."""
    protect: tuple[str, ...] = ()
    """Read-only, although they are in a writable folder."""
    hide: tuple[str, ...] = ()
    """Empty inside, although they are in a visible folder."""
    network: Network = Network()
    limits: Limits = Limits()
    joins: Namespaces | None = None
    """The running sandbox whose network and temporary files it shares. None: no network at all."""
    image: str = ""
    """The image of a container; empty: bubblewrap."""


class Unconfined(Struct, frozen=True):
    """A process outside of every sandbox, with the reason."""

    why: str


Confinement = Policy | Unconfined

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix/store", "/snap")
"""Read-only in every sandbox, where they exist. `/var`, `/srv`, `/root`, `/home` and `/mnt` are not."""

SECRET_SYSTEM = (
    "/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssh",
    "/etc/ssl/private", "/etc/krb5.keytab", "/etc/wireguard", "/etc/NetworkManager",
)  # fmt: skip
"""Root can read them, and root stays the owner of files in its sandbox."""

SECRET_HOME = (
    ".ssh", ".aws", ".gnupg", ".azure", ".kube", ".docker", ".netrc", ".git-credentials", ".pgpass", ".password-store",
    ".mozilla", ".thunderbird", ".config/google-chrome", ".config/chromium", ".config/BraveSoftware", ".config/gcloud",
    ".config/gh", ".config/op", ".config/git/credentials", ".local/share/keyrings", ".pypirc", ".bash_history",
    ".zsh_history", ".terraform.d", ".cargo/credentials.toml", ".cargo/credentials",
)  # fmt: skip
"""Below the home folder. They are hidden even if the home folder itself is the working folder."""

TOOLCHAINS = (
    ".local/bin", ".local/lib", ".local/pipx", ".local/share/pipx", ".local/share/uv", ".local/share/pnpm",
    ".local/share/mise", ".nvm/versions", ".pyenv", ".rbenv", ".sdkman/candidates", ".rustup", ".cargo/bin",
    ".deno/bin", ".bun/bin", ".volta", ".asdf", "go/bin", ".gitconfig", ".config/git/config",
)  # fmt: skip
"""Programs below the home folder, read-only. None of them holds a secret."""


class SandboxedSession(Struct, frozen=True):
    """What the policy needs to know about a session."""

    folder: str
    folders: tuple[str, ...] = ()
    """Its other folders."""
    git: tuple[str, ...] = ()
    """Git folders outside of them, for a work tree."""
    protect: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    """Paths and hosts that a person granted."""
    write: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()


class Machine(Struct, frozen=True):
    """What the policy needs to know about the host."""

    home: str
    """The home folder of the user."""
    private: tuple[str, ...] = ()
    """Portico's home, and everything else that no sandbox may see."""
    programs: tuple[str, ...] = ()
    """Folders of programs outside of the system, such as a virtual environment: read-only."""


class SandboxRules(Struct, frozen=True):
    """The settings that apply, for all agents and this one together."""

    presets: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    private: tuple[str, ...] = ()
    """Names and addresses that may be private addresses."""
    limits: Limits = Limits()
    container: bool = False
    """The backend is a container, not bubblewrap."""
    image: str = ""
    """Of the container; empty: the one of the project's `devcontainer.json`."""


def policy_for(
    session: SandboxedSession, agent: Vendor, rules: SandboxRules, machine: Machine, mode: Literal["project", "strict"]
) -> Policy:
    """Derive the policy of a process. `agent` is empty for commands, which do not need the login of an agent."""
    state = agent.state if mode == "project" else agent.strict_state or agent.state
    project = mode == "project"
    hosts = (*agent.hosts, *(hosts_of(rules.presets) + rules.hosts + session.hosts if project else ()))
    secrets = (*SECRET_SYSTEM, *_below(machine.home, SECRET_HOME))
    granted = {*rules.read, *rules.write, *session.read, *session.write}
    return Policy(
        mode=mode,
        folder=session.folder,
        home=machine.home,
        read=(*SYSTEM, *machine.programs, *_below(machine.home, TOOLCHAINS), *rules.read, *session.read),
        write=(*session.folders, *session.git, *_below(machine.home, state), *rules.write, *session.write),
        protect=tuple(path for path in session.protect if path not in session.write),
        hide=(*agent.hide, *(path for path in secrets if path not in granted), *machine.private),
        network=Network(
            hosts=tuple(dict.fromkeys(hosts)), ports=(*rules.ports, *agent.ports), asks=project, private=rules.private
        ),
        limits=rules.limits,
        image=rules.image,
    )


def _below(folder: str, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(os.path.join(folder, name) for name in names)
