"""Settings: one TOML file, then the environment, then flags, in growing strength.

Every value knows where it came from (`portico config` shows it). An unknown key is an error that names the nearest
right one. The file is read again when it changes; a broken edit keeps the old values and says so in the log.

Environment: PORTICO_ + section + _ + key, for example PORTICO_SERVER_PORT=9000.
"""

import ast
import inspect
import itertools
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import UnionType
from typing import Any, Literal, get_args, get_origin

import msgspec
from msgspec import Struct

from portico import limits
from portico.commands import SCOPES
from portico.errors import BadRequest, nearest
from portico.events import Budget


class Server(Struct, forbid_unknown_fields=True):
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
    retention_hours: float = limits.RETENTION_HOURS
    """How long the deltas of finished turns are kept before they are compacted."""
    disk_share: float = limits.DISK_SHARE
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


class Telemetry(Struct, forbid_unknown_fields=True):
    endpoint: str = ""
    """Where OpenTelemetry goes (OTLP over HTTP), such as `http://127.0.0.1:4318`; empty: nowhere. Read at start."""
    content: bool = False
    """Also what was said, and what tools got and gave. Read at start."""


class AgentSettings(Struct, forbid_unknown_fields=True):
    enabled: bool = True
    """The built-in agent loop, on or off."""
    prefix: str = "agent:"
    """A message that begins so is an agent run."""
    max_steps: int = 12
    """Steps of one agent run."""
    allowed_roots: list[str] = msgspec.field(default_factory=lambda: ["*"])
    """Folders, relative to the project, that the built-in agent may touch; `*` is the whole project."""
    require_approval: Literal["edits", "all", "none"] = "edits"
    """What the built-in agent asks for."""
    approval_timeout: float | None = None
    """Seconds; no answer in time means no. Unset: an approval waits as long as its turn lives."""
    turn_idle_timeout: float = limits.TURN_IDLE_SECONDS
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
    TLS."""


class Settings(Struct, forbid_unknown_fields=True):
    server: Server = msgspec.field(default_factory=Server)
    security: Security = msgspec.field(default_factory=Security)
    log: LogSettings = msgspec.field(default_factory=LogSettings)
    cluster: ClusterSettings = msgspec.field(default_factory=ClusterSettings)
    jobs: JobSettings = msgspec.field(default_factory=JobSettings)
    telemetry: Telemetry = msgspec.field(default_factory=Telemetry)
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
    workspaces: list[str] = []
    """Project folders; the current directory when empty."""
    default_agent: str = ""
    """The agent of sessions that name none; when empty, the first real one that is ready."""
    models: list[str] = []
    """Models of the built-in agent, in the order they are tried."""
    agents: dict[str, Any] = {}
    """Tables of single agents, for example [agents.acp.opencode]; each agent checks its own. Read at start."""


class Source(Struct, frozen=True):
    """Where a value came from: `default`, the file's path, `env NAME` or `flag --name`."""

    value: Any
    origin: str


class Loaded(Struct):
    settings: Settings
    sources: dict[str, Source]


_MOST_HOURS = 100 * 365 * 24
_MOST_SECONDS = _MOST_HOURS * 3600
"""As good as for ever, and still a number that one can reckon with: TOML knows `inf`."""

_OTHERS = ("PORTICO_HOME", "PORTICO_URL", "PORTICO_TOKEN", "PORTICO_CONTEXT")
"""Variables of ours that are no settings."""
TABLES = ("agents", "notices.webhooks", "notices.commands")
"""They have no place in one variable."""
SECTIONS = (
    "server",
    "security",
    "log",
    "cluster",
    "jobs",
    "telemetry",
    "agent",
    "http",
    "doors",
    "approvals",
    "budgets",
    "people",
    "login.oidc",
    "login.proxy",
    "quotas",
    "retention",
    "notices",
)


def keys() -> dict[str, Any]:
    """Every key with its default, `section.key` or `key`."""
    return _flat(msgspec.to_builtins(Settings()))


def _flat(document: dict[str, Any], above: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in document.items():
        name = above + key
        if name in SECTIONS or any(each.startswith(f"{name}.") for each in SECTIONS):
            if not isinstance(value, dict):
                raise BadRequest(f"[{name}] must be a table.", field=name)
            flat |= _flat(value, f"{name}.")
        else:
            flat[name] = value
    return flat


def describe(key: str) -> str:
    """What a setting does: the words under its line above, which `portico config` shows too."""
    section, _, name = key.rpartition(".")
    body = ast.parse(inspect.getsource(_shape(section))).body[0]
    assert isinstance(body, ast.ClassDef)
    for line, words in itertools.pairwise(body.body):
        named = isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and line.target.id == name
        if named and isinstance(words, ast.Expr) and isinstance(words.value, ast.Constant):
            return str(words.value.value)
    return ""


def shown(value: Any) -> Any:
    """A setting as people may see it: an address without its password, a table without its secret."""
    if isinstance(value, list):
        return [shown(each) for each in value]
    if isinstance(value, dict) and "secret" in value:
        return {**value, "secret": "***"}
    return re.sub(r"(://[^:/@]*):[^@/]*@", r"\1:***@", value) if isinstance(value, str) else value


def has_variable(default: Any) -> bool:
    """A table has no place in one variable."""
    return not isinstance(default, dict)


def is_secret(key: str) -> bool:
    """Whether its value is shown to nobody."""
    return key.endswith(("_secret", ".secret", ".api_key"))


def env_name(key: str) -> str:
    return "PORTICO_" + key.replace(".", "_").upper()


def load(path: Path, environ: Mapping[str, str] | None = None, flags: Mapping[str, Any] | None = None) -> Loaded:
    environ = os.environ if environ is None else environ
    sources = {key: Source(default, "default") for key, default in keys().items()}
    for key, value in _read(path).items():
        sources[key] = Source(value, str(path))
    for name, text in environ.items():
        found = _variable(name) if name.startswith("PORTICO_") else None
        if found is not None:
            sources[found] = Source(_from_env(found, text, name), f"env {name}")
    for key, value in (flags or {}).items():
        if value is not None:
            sources[key] = Source(value, f"flag --{key.rpartition('.')[2].replace('_', '-')}")
    return Loaded(_build(sources), sources)


def _read(path: Path) -> dict[str, Any]:
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):  # whoever needs the folder says what is wrong with it
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadRequest(f"The settings {str(path)!r} cannot be read: {error}") from error
    try:
        flat = _flat(document)
    except BadRequest as error:
        raise BadRequest(f"{str(path)!r}: {error.message}", field=error.field) from None
    for key in flat:
        _check_known(key, str(path))
    return flat


def _check_known(key: str, where: str) -> None:
    known = keys()
    if key not in known:
        near = nearest(key, [*SECTIONS, *known])
        hint = f" Did you mean {near!r}?" if near else f" Known keys: {', '.join(sorted(known))}."
        raise BadRequest(f"{where}: there is no setting {key!r}.{hint}", field=key)


def _variable(name: str) -> str | None:
    """The key that an environment variable sets. One that is nearly a setting's is a mistake; others are not ours."""
    names = {env_name(key): key for key, default in keys().items() if key not in TABLES and has_variable(default)}
    if name not in names and name not in _OTHERS:
        near = nearest(name, names, 0.85)
        if near:
            raise BadRequest(f"The environment: there is no setting {name!r}. Did you mean {near!r}?", field=name)
    return names.get(name)


def _from_env(key: str, text: str, name: str) -> Any:
    """Lists are divided by the path separator; everything else is read as the key's own type."""
    kind = _type_of(key)
    if get_origin(kind) is list:
        return [each for each in text.split(os.pathsep) if each]
    try:
        return msgspec.convert(text, kind, strict=False)
    except msgspec.ValidationError:
        raise BadRequest(f"{name}={text!r}: {_wanted(kind)}.", field=key) from None


def _type_of(key: str) -> Any:
    section, _, name = key.rpartition(".")
    return next(field.type for field in msgspec.structs.fields(_shape(section)) if field.name == name)


def _shape(section: str) -> Any:
    shape: Any = Settings
    for name in section.split(".") if section else ():
        fields = msgspec.structs.fields(shape)
        shape = next((field.type for field in fields if field.name == name), shape)
    return shape


def _build(sources: Mapping[str, Source]) -> Settings:
    tree: dict[str, Any] = {}
    for key, source in sources.items():
        section, _, name = key.rpartition(".")
        table = tree
        for part in section.split(".") if section else ():
            table = table.setdefault(part, {})
        table[name] = source.value
        kind = _type_of(key)
        try:
            msgspec.convert(source.value, kind)
        except msgspec.ValidationError as error:
            words = str(error) if key in TABLES else _wanted(kind)
            value = "(hidden)" if is_secret(key) else repr(shown(source.value))
            raise BadRequest(f"{source.origin}: {key} = {value}: {words}.", field=key) from None
    settings = msgspec.convert(tree, Settings)
    _check_values(settings, sources)
    return settings


def _wanted(kind: Any) -> str:
    """What a value of this type looks like, for somebody who wrote another."""
    if get_origin(kind) is Literal:
        return f"choose one of {', '.join(map(repr, get_args(kind)))}"
    if isinstance(kind, UnionType):
        kind = get_args(kind)[0]
    forms = {bool: "true or false", int: "a whole number", float: "a number", str: 'some "text"', list: 'a ["list"]'}
    return f"this has to be {forms.get(get_origin(kind) or kind, 'a table')}"


def _check_values(settings: Settings, sources: Mapping[str, Source]) -> None:
    timeout = settings.agent.approval_timeout
    rules: list[tuple[str, bool, str]] = [
        ("server.port", 0 <= settings.server.port <= 65535, "a port is a number from 0 to 65535"),
        ("log.url", not settings.log.url or settings.log.url.startswith(("postgresql://", "postgres://")), _URL),
        ("cluster.capacity", 1 <= settings.cluster.capacity <= 100_000, "1 to 100000 sessions"),
        ("cluster.lease_seconds", 0.5 <= settings.cluster.lease_seconds <= 3600, "half a second to an hour"),
        ("cluster.port", 0 <= settings.cluster.port <= 65535, "a port is a number from 0 to 65535"),
        ("log.retention_hours", 0 <= settings.log.retention_hours <= _MOST_HOURS, "0 hours to 100 years"),
        ("log.disk_share", 0 < settings.log.disk_share <= 1, "more than 0, at most 1"),
        ("agent.max_steps", 1 <= settings.agent.max_steps <= 1000, "1 to 1000 steps"),
        ("agent.approval_timeout", timeout is None or 0 < timeout <= _MOST_SECONDS, "seconds, more than 0"),
        ("agent.turn_idle_timeout", 0 < settings.agent.turn_idle_timeout <= _MOST_SECONDS, "seconds, more than 0"),
    ]
    rules += _rules_of_people(settings) + _rules_of_retention(settings.retention)
    for name, patterns in msgspec.structs.asdict(settings.approvals).items():
        if name != "reads":
            rules.append((f"approvals.{name}", all(map(_is_rule, patterns)), _RULE))
    for key, ok, rule in rules:
        if not ok:
            raise BadRequest(f"{sources[key].origin}: {key} = {sources[key].value!r}: {rule}.", field=key)


def _rules_of_retention(settings: RetentionSettings) -> list[tuple[str, bool, str]]:
    days = "0 days to 100 years, and not archived later than deleted"
    each: list[RetentionSettings | RetentionRule] = [settings, *settings.rules]
    in_order = [not rule.delete_days or rule.archive_days <= rule.delete_days for rule in each]
    bounded = [0 <= value <= _MOST_HOURS / 24 for rule in each for value in (rule.archive_days, rule.delete_days)]
    return [("retention.delete_days", all((*in_order, *bounded)), days)]


def _rules_of_people(settings: Settings) -> list[tuple[str, bool, str]]:
    oidc, given = settings.login.oidc, [settings.people.scopes, *settings.login.oidc.groups.values()]
    known = f"each scope is one of {', '.join(SCOPES)}"
    at_least = "0 or more"
    admits = bool(oidc.domains or oidc.groups)
    return [
        ("people.scopes", set(given[0]) <= set(SCOPES), known),
        ("login.oidc.groups", all(set(each) <= set(SCOPES) for each in given), known),
        ("login.oidc.client_id", not oidc.issuer or bool(oidc.client_id), "the provider knows this host by a name"),
        (
            "login.oidc.domains",
            not oidc.issuer or admits,
            "say who may come in: domains, groups, or ['*'] for everybody",
        ),
        ("login.oidc.hours", 0 < oidc.hours <= 24 * 365, "more than 0 hours, at most a year"),
        *((f"quotas.{name}", value >= 0, at_least) for name, value in msgspec.structs.asdict(settings.quotas).items()),
    ]


_URL = "an address such as postgresql://USER:PASSWORD@HOST:5432/DATABASE, or empty for a file in the home folder"
_RULE = "each is some text of at most 500 characters, and what stands between slashes is a regular expression"


def _is_rule(text: str) -> bool:
    if not text.strip() or len(text) > 500:
        return False
    try:
        re.compile(text[1:-1] if text.startswith("/") and text.endswith("/") else "")
    except (re.error, OverflowError, RecursionError):
        return False
    return True
