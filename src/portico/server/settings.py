"""The settings: a struct for each section of the file, with the words that `portico config` shows.

`settings_load.py` reads the file, the environment and flags into them.
"""

from typing import Any, Literal

import msgspec
from msgspec import Struct

from portico import limits
from portico.kernel import limits as kernel_limits
from portico.kernel.events import Budget

SHARED = "shared.toml"
"""Beside the settings file: what concerns everyone. Hosts on one log keep it the same; a host's own file and
environment come above it."""


class ServerSettings(Struct, forbid_unknown_fields=True):
    host: str = "127.0.0.1"
    """The address to listen on. Anything but loopback needs --allow-remote. Read at start."""
    port: int = 8888
    """The port; 0 picks a free one. Read at start."""
    unix_socket: str = ""
    """A Unix socket to listen on instead of an address. Read at start."""
    tls_cert: str = ""
    """A certificate (PEM, with its chain): the host then speaks TLS. Read at start, its contents when they change."""
    tls_key: str = ""
    """The key of that certificate."""
    public_url: str = ""
    """How people reach this host, for the login link; its name is allowed as `Host`."""
    root_path: str = ""
    """The base path below which a proxy offers this host, such as `/portico`. Read at start."""
    trusted_proxies: list[str] = []
    """Addresses or networks whose `X-Forwarded-*` headers count; `unix` for whoever comes over the Unix socket. Read
    at start."""


class Security(Struct, forbid_unknown_fields=True):
    allow_hosts: list[str] = []
    """Further names this host answers to (the Host header)."""
    allow_origins: list[str] = []
    """Further origins whose pages may call us, exactly as browsers send them. Any scheme but `file`."""


class LogSettings(Struct, forbid_unknown_fields=True):
    url: str = ""
    """A PostgreSQL database for the log (`postgresql://USER@HOST/NAME`), so that several hosts share it; empty: a
    file in the home folder. Read at start."""
    durability: Literal["normal", "full"] = "normal"
    """`full` also survives a loss of power, at the price of an fsync per commit. Read at start."""
    retention_hours: float = kernel_limits.RETENTION_HOURS
    """How long the deltas of finished turns are kept before they are compacted."""
    disk_share: float = kernel_limits.DISK_SHARE
    """The part of its disk that the log may take; above it no turn begins."""
    format: Literal["text", "json"] = "text"
    """Form of the lines on standard error. Read at start."""
    level: Literal["debug", "info", "warning", "error"] = "info"
    """The least that is logged."""


class ClusterSettings(Struct, forbid_unknown_fields=True):
    host: str = ""
    """This host's name among those on one log; the machine's name when empty. Read at start."""
    place: str = ""
    """Hosts of one place see the same files; the machine's name when empty. Read at start."""
    labels: list[str] = []
    """What this host is good for, for those who choose one. Read at start."""
    capacity: int = 100
    """Sessions at work at once before others are preferred. Read at start."""
    lease_seconds: float = 10.0
    """Without a sign of life for this long, other hosts of its place take over its sessions. Read at start."""
    address: str = "127.0.0.1"
    """Where this host listens for the other hosts, and what they call. Read at start."""
    port: int = 0
    """The port for that; 0 picks a free one. Read at start."""
    tls_cert: str = ""
    """A certificate (PEM) for `cluster.address`: hosts then speak mTLS with each other. Read at start."""
    tls_key: str = ""
    """The key of that certificate. Read at start."""
    tls_ca: str = ""
    """The authority (PEM) of the certificates of all hosts; no other is trusted. Read at start."""


class JobSettings(Struct, forbid_unknown_fields=True):
    engine: Literal["local", "temporal"] = "local"
    """Who hands out the works of jobs: this host by itself, or a Temporal server to all hosts of a place. Read at
    start."""
    address: str = "127.0.0.1:7233"
    """Of the Temporal server, `HOST:PORT`. Read at start."""
    namespace: str = "default"
    """Its namespace, which has to exist. Read at start."""
    tls: bool = False
    """Speak TLS with it; the settings below imply it. Read at start."""
    tls_ca: str = ""
    """A certificate (PEM) that the server's is checked against, instead of the system's. Read at start."""
    tls_cert: str = ""
    """A certificate (PEM) by which the server knows us. Read at start."""
    tls_key: str = ""
    """The key of that certificate. Read at start."""
    api_key: str = ""
    """A key for Temporal Cloud; better in PORTICO_JOBS_API_KEY. Read at start."""


class TelemetrySettings(Struct, forbid_unknown_fields=True):
    endpoint: str = ""
    """Where OpenTelemetry goes (OTLP over HTTP), such as `http://127.0.0.1:4318`; empty: nowhere. Read at start."""
    content: bool = False
    """Also what was said, and what tools got and gave. Read at start."""


class AgentSettings(Struct, forbid_unknown_fields=True):
    enabled: bool = True
    """The built-in agent loop, on or off."""
    prefix: str = "agent:"
    """A message that begins so is an agent run."""
    max_steps: int = 200
    """Steps of one agent run before a person is asked whether it continues."""
    allowed_roots: list[str] = msgspec.field(default_factory=lambda: ["*"])
    """Folders, relative to the project, that the built-in agent may touch; `*` is the whole project."""
    require_approval: Literal["edits", "all", "none"] = "edits"
    """What the built-in agent asks for."""
    approval_timeout: float | None = None
    """Seconds; no answer in time means no. Unset: an approval waits as long as its turn lives."""
    turn_idle_timeout: float = kernel_limits.TURN_IDLE_SECONDS
    """Seconds of silence after which an agent counts as dead."""
    max_processes: int = limits.AGENT_PROCESSES
    """Agent processes at once; 0: no bound. One that nobody uses is ended first, then turns wait."""
    max_memory_mb: int = 0
    """Memory of all agent processes together, in MB; 0: half of the machine's."""
    capture_changes: bool = True
    """Remember what each turn changes in a git work tree."""


class HttpSettings(Struct, forbid_unknown_fields=True):
    inject_into_chat: bool = False
    """A message over HTTP (`POST /message`) becomes the conversation's draft: it stands in every input, and a person
    sends it."""


class DoorSettings(Struct, forbid_unknown_fields=True):
    disabled: list[str] = []
    """Doors that are not opened, by name, such as `anywhere` or `mcp`; `portico doctor` lists them. The command line
    needs `rest`, and browsers need `web`. Read at start."""
    mcp_tools: Literal["ask", "work", "all"] = "work"
    """The tools that a model sees over MCP: `ask` (8 tools to give work to agents), `work` (also to organize sessions
    and to run jobs) or `all`. A token that names a set has that one."""


class ApprovalSettings(Struct, forbid_unknown_fields=True):
    reads: bool = True
    """Reads inside the working directory pass unasked."""
    edits: list[str] = []
    """Globs below the working directory whose edits pass unasked; `!GLOB` takes some out again, the last that matches
    counts. `.git`, `.env` and lock files always ask."""
    allow_commands: list[str] = []
    """Commands that pass unasked: their first words, or `/a regular expression/`."""
    ask_commands: list[str] = []
    """Commands that ask, whoever else lets them pass."""
    deny_commands: list[str] = []
    """Commands that are refused without asking, above every other rule."""


class PersonBudget(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    day: Budget = Budget()
    month: Budget = Budget()


class BudgetSettings(Struct, forbid_unknown_fields=True):
    turn: Budget = Budget()
    """Of every turn: a table of `dollars`, `tokens`, `minutes`, `calls`, each of them optional. When it is spent, the
    agent waits and a person is asked."""
    session: Budget = Budget()
    """Of every session with its sub-agents; also `turns`. A session may have one of its own besides
    (`config.budget`)."""
    day: Budget = Budget()
    """Of the whole host on one day of its own time zone: `dollars`, `tokens`, `turns`."""
    month: Budget = Budget()
    """Of the whole host in one month: `dollars`, `tokens`, `turns`."""
    job: Budget = Budget()
    """Of every job with all its tasks. An entry may give a job one of its own besides (`budget`)."""
    automation: Budget = Budget()
    """Of every run of an automation. A plan may have one of its own besides (`budget`)."""
    person_day: Budget = Budget()
    """Of every person, and of every token that is nobody's, on one day: `dollars`, `tokens`, `turns`."""
    person_month: Budget = Budget()
    """The same for one month."""
    people: dict[str, PersonBudget] = {}
    """Other ones for some: `[budgets.people."ada@example.org"]` or `[budgets.people."token:ci"]` with `day` and
    `month`."""


class PeopleSettings(Struct, forbid_unknown_fields=True):
    scopes: list[str] = msgspec.field(default_factory=lambda: ["read", "drive", "approve", "files", "terminal", "jobs"])
    """What a person may do who logs in for the first time."""
    admins: list[str] = []
    """People who have the scope `admin` besides: they see everything, and that is audited."""


class OidcSettings(Struct, forbid_unknown_fields=True):
    issuer: str = ""
    """The OpenID provider, such as `https://id.example.org`; empty: no such login."""
    client_id: str = ""
    """This host's name at the provider."""
    client_secret: str = ""
    """Its secret there; better in PORTICO_LOGIN_OIDC_CLIENT_SECRET or in a file. Empty: a public client."""
    client_secret_file: str = ""
    """A file that holds the secret."""
    name: str = ""
    """What the login page calls the provider; its host name, when empty."""
    person_claim: str = "email"
    """The claim that names a person: `email` (which the provider must have verified), `preferred_username`, `sub`."""
    unverified_email: bool = False
    """Take an address also from a provider that does not say it was verified."""
    request_scopes: list[str] = msgspec.field(default_factory=lambda: ["openid", "email", "profile"])
    """What is asked of the provider."""
    domains: list[str] = []
    """Who may come in: people with a verified address in one of these; `*`: everybody whom the provider knows."""
    groups: dict[str, list[str]] = {}
    """Who may come in, and with which scopes: members of these groups, as `group = ["read", "drive"]`."""
    groups_claim: str = "groups"
    """The claim that lists a person's groups."""
    hours: float = 12.0
    """How long a login lasts."""


class ProxySettings(Struct, forbid_unknown_fields=True):
    header: str = ""
    """The header in which a trusted proxy names the person who it has logged in, such as `X-Remote-User`. Read at
    start."""
    secret: str = ""
    """What the proxy sends in `X-Portico-Proxy-Secret`: needed where it is trusted by a loopback address, which every
    local program has. Better in PORTICO_LOGIN_PROXY_SECRET or in a file. Read at start."""
    secret_file: str = ""
    """A file that holds it. Read at start."""


class LoginSettings(Struct, forbid_unknown_fields=True):
    oidc: OidcSettings = msgspec.field(default_factory=OidcSettings)
    proxy: ProxySettings = msgspec.field(default_factory=ProxySettings)


class QuotaSettings(Struct, forbid_unknown_fields=True):
    sessions: int = 0
    """Sessions of one person that are not archived; 0: no bound."""
    turns: int = 0
    """Turns of one person that run at once; 0: no bound."""
    terminals: int = 0
    """Open terminals of one person; 0: no bound."""
    disk_mb: int = 0
    """What the sessions of one person take in the log, in MB; 0: no bound."""


class RetentionRule(Struct, forbid_unknown_fields=True):
    folder: str = ""
    owner: str = ""
    archive_days: float = 0
    delete_days: float = 0


class RetentionSettings(Struct, forbid_unknown_fields=True):
    archive_days: float = 0
    """Sessions in which nothing happened for so many days are archived; 0: never."""
    delete_days: float = 0
    """Sessions in which nothing happened for so many days are deleted; 0: never."""
    rules: list[RetentionRule] = []
    """Other days for some: `{folder = "/srv/app", owner = "ann@example.org", delete_days = 30}`. The first that fits a
    session counts, before the days above."""


NoticeKind = Literal[
    "approval",
    "question",
    "budget",
    "job_failed",
    "automation_failed",
    "turn_failed",
    "job_done",
    "automation_done",
    "turn_done",
]
"""In the order of their weight."""


class NoticeTarget(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Who is told of what."""

    name: str
    kinds: list[NoticeKind] = []
    """Empty: all."""
    folders: list[str] = []
    """Only what works in one of these folders, or below; empty: everything."""
    quiet: str = ""
    """Hours without notices, `22:00-07:00`: they come afterwards, as far as they still matter."""
    zone: str = ""
    """Of these hours: an IANA zone; empty: the machine's."""
    person: str = ""
    """Only what this person may see; empty: everything."""
    sessions: str = "all"
    """`all`, `mine` (what belongs to that person, or else to nobody but the host), or the id of one session."""


class Webhook(NoticeTarget, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    url: str
    secret: str = ""
    """`whsec_` and base64; several are divided by blanks."""
    secret_env: str = ""
    """A variable that holds it."""
    secret_file: str = ""
    """A file that holds it."""


class NoticeCommand(NoticeTarget, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    command: list[str]
    """A program and its arguments; the notice comes as JSON on its standard input."""


class NoticeSettings(Struct, forbid_unknown_fields=True):
    webhooks: list[Webhook] = []
    """Tables `[[notices.webhooks]]`: `name`, `url`, one of `secret`, `secret_env` and `secret_file`; and `kinds`,
    `folders`, `quiet`, `zone`, `person`, `sessions`."""
    commands: list[NoticeCommand] = []
    """Tables `[[notices.commands]]`: `name`, `command` (a list); and `kinds`, `folders`, `quiet`, `zone`,
    `person`, `sessions`."""
    contact: str = ""
    """Whom push services write to about pushes of this host: `mailto:ada@example.org` or an address with https; empty:
    `server.public_url`."""
    allow_private: list[str] = []
    """Names or addresses, as they stand in `url`, that a webhook may reach although they are private, and without
    TLS. `NAME:PORT` allows only this port, and allows it for web push, too."""


class AgentSandbox(Struct, forbid_unknown_fields=True):
    """The table `[sandbox.agents."acp:codex"]`."""

    default: Literal["", "off", "project", "strict"] = ""
    hosts: list[str] = []
    ports: list[int] = []
    read: list[str] = []
    write: list[str] = []


class SandboxSettings(Struct, forbid_unknown_fields=True):
    default: Literal["", "off", "project", "strict"] = ""
    """The sandbox of sessions that choose none: `off`, `project` or `strict`. Empty: `project` for jobs and automations
    where the sandbox works, `off` for conversations."""
    require: bool = False
    """Reject sessions without a sandbox."""
    backend: Literal["bubblewrap", "container"] = "bubblewrap"
    """`container`: podman or docker, for the toolchain of an image."""
    image: str = ""
    """Of the container; empty: the one of the project's `.devcontainer/devcontainer.json`. It is not downloaded."""
    presets: list[Literal["pypi", "npm", "crates", "go", "github", "debian"]] = msgspec.field(
        default_factory=lambda: ["pypi", "npm", "crates", "go", "github", "debian"]
    )
    """Groups of hosts that `project` may reach without asking."""
    hosts: list[str] = []
    """Further hosts that `project` may reach without asking, such as `docs.example.org` or `*.example.org:8443`."""
    allow_private: list[str] = []
    """Names or addresses that a sandbox may reach although they are private."""
    ports: list[int] = []
    """Ports on this machine's loopback that a sandbox may reach, such as 11434 for Ollama."""
    read: list[str] = []
    """Further paths that are visible in a sandbox, read-only."""
    write: list[str] = []
    """Further paths that are writable in a sandbox."""
    memory_mb: int = 0
    """Memory for the data of one process in a sandbox, in MB, and with control groups of all of them together; 0: half
    of the machine's."""
    processes: int = 1024
    """Processes of one session in a sandbox; 0: no limit. Those of root are limited only with control groups."""
    tmp_mb: int = 1024
    """Size of `/tmp` and of the home folder in a sandbox together, in MB. They are in memory."""
    agents: dict[str, AgentSandbox] = {}
    """Other values for some agents: `[sandbox.agents."acp:codex"]` with `default`, `hosts`, `ports`, `read`,
    `write`."""


class Settings(Struct, forbid_unknown_fields=True):
    server: ServerSettings = msgspec.field(default_factory=ServerSettings)
    security: Security = msgspec.field(default_factory=Security)
    log: LogSettings = msgspec.field(default_factory=LogSettings)
    cluster: ClusterSettings = msgspec.field(default_factory=ClusterSettings)
    jobs: JobSettings = msgspec.field(default_factory=JobSettings)
    telemetry: TelemetrySettings = msgspec.field(default_factory=TelemetrySettings)
    agent: AgentSettings = msgspec.field(default_factory=AgentSettings)
    http: HttpSettings = msgspec.field(default_factory=HttpSettings)
    doors: DoorSettings = msgspec.field(default_factory=DoorSettings)
    approvals: ApprovalSettings = msgspec.field(default_factory=ApprovalSettings)
    budgets: BudgetSettings = msgspec.field(default_factory=BudgetSettings)
    people: PeopleSettings = msgspec.field(default_factory=PeopleSettings)
    login: LoginSettings = msgspec.field(default_factory=LoginSettings)
    quotas: QuotaSettings = msgspec.field(default_factory=QuotaSettings)
    retention: RetentionSettings = msgspec.field(default_factory=RetentionSettings)
    notices: NoticeSettings = msgspec.field(default_factory=NoticeSettings)
    sandbox: SandboxSettings = msgspec.field(default_factory=SandboxSettings)
    workspaces: list[str] = []
    """Project folders; the current directory when empty."""
    default_agent: str = ""
    """The agent of sessions that name none; when empty, the first real one that is ready."""
    models: list[str] = []
    """Models of the built-in agent, in the order they are tried."""
    agents: dict[str, Any] = {}
    """Tables of single agents, for example [agents.acp.opencode]; each agent checks its own. Read at start."""
    features: dict[str, Any] = {}
    """Tables of features of other packages, for example [features.bookmarks]; each feature has its own shape."""
