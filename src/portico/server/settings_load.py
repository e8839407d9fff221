"""Where settings come from: one TOML file, then the environment, then flags, in growing strength.

Every value knows where it came from (`portico config` shows it). An unknown key is an error that names the nearest
right one. The file is read again when it changes; a broken edit keeps the old values and says so in the log.

Environment: PORTICO_ + section + _ + key, for example PORTICO_SERVER_PORT=9000.
"""

import ast
import inspect
import itertools
import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, Literal, get_args, get_origin

import msgspec
from msgspec import Struct

from portico.kernel.commands import SCOPES
from portico.kernel.errors import BadRequest, nearest
from portico.server import settings
from portico.server.settings import SHARED, ClusterSettings, RetentionRule, RetentionSettings, Settings


class SettingSource(Struct, frozen=True):
    """Where a value came from: `default`, the file's path, `env NAME` or `flag --name`."""

    value: Any
    origin: str


class Loaded(Struct):
    settings: Settings
    sources: dict[str, SettingSource]


_MOST_HOURS = 100 * 365 * 24
_MOST_SECONDS = _MOST_HOURS * 3600
"""As good as for ever, and still a number that one can reckon with: TOML knows `inf`."""

_OTHERS = ("PORTICO_HOME", "PORTICO_URL", "PORTICO_TOKEN", "PORTICO_CONTEXT")
"""Variables of ours that are no settings."""
TABLES = ("agents", "features", "notices.webhooks", "notices.commands")
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
    "sandbox",
)


_WITH_TABLES = {*SECTIONS, *(each.rpartition(".")[0] for each in SECTIONS)} - {""}
"""`login` has no settings of its own, and is a table with tables."""


def keys() -> dict[str, Any]:
    """Every key with its default, `section.key` or `key`."""
    return _flat(msgspec.to_builtins(Settings()))


def _flat(document: dict[str, Any], above: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in document.items():
        name = above + key
        if name in _WITH_TABLES:
            if not isinstance(value, dict):
                raise BadRequest(f"[{name}] must be a table.", field=name)
            flat |= _flat(value, f"{name}.")
        else:
            flat[name] = value
    return flat


def describe(key: str) -> str:
    """What a setting does: the words under its line above, which `portico config` shows too."""
    section, _, name = key.rpartition(".")
    return _descriptions().get((_shape(section).__name__, name), "")


@cache
def _descriptions() -> dict[tuple[str, str], str]:
    """By class and field. The source is parsed once: that takes 20 ms, and the pages ask for a hundred settings."""
    found: dict[tuple[str, str], str] = {}
    shapes = [each for each in ast.parse(inspect.getsource(settings)).body if isinstance(each, ast.ClassDef)]
    for shape in shapes:
        for line, words in itertools.pairwise(shape.body):
            if not (isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)):
                continue
            if isinstance(words, ast.Expr) and isinstance(words.value, ast.Constant):
                found[shape.name, line.target.id] = str(words.value.value)
    return found


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


_OWN = ("server.", "log.", "cluster.", "jobs.", "telemetry.", "workspaces", "agents")
"""What is each host's own affair."""


def load(path: Path, environ: Mapping[str, str] | None = None, flags: Mapping[str, Any] | None = None) -> Loaded:
    environ = os.environ if environ is None else environ
    sources = {key: SettingSource(default, "default") for key, default in keys().items()}
    shared = path.with_name(SHARED)
    for key, value in _read(shared).items():
        if key.startswith(_OWN):
            raise BadRequest(f"{str(shared)!r}: {key!r} is each host's own; set it in {path.name}.", field=key)
        sources[key] = SettingSource(value, str(shared))
    for key, value in _read(path).items():
        sources[key] = SettingSource(value, str(path))
    for name, text in environ.items():
        found = _variable(name) if name.startswith("PORTICO_") else None
        if found is not None:
            sources[found] = SettingSource(_from_env(found, text, name), f"env {name}")
    for key, value in (flags or {}).items():
        if value is not None:
            sources[key] = SettingSource(value, f"flag --{_flag(key)}")
    return Loaded(_build(sources), sources)


def _flag(key: str) -> str:
    named = {"log.url": "log", "workspaces": "workspace"}
    return named.get(key, key.rpartition(".")[2].replace("_", "-"))


def _read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text("utf-8")
        import tomllib  # late: many hosts have no such file

        document = tomllib.loads(text)
    except (FileNotFoundError, NotADirectoryError):  # whoever needs the folder says what is wrong with it
        return {}
    except (OSError, ValueError) as error:  # also what is no UTF-8, or no TOML
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
    kind = type_of(key)
    if get_origin(kind) is list:
        return [each for each in text.split(os.pathsep) if each]
    try:
        return msgspec.convert(text, kind, strict=False)
    except msgspec.ValidationError:
        raise BadRequest(f"{name}={text!r}: {_wanted(kind)}.", field=key) from None


def type_of(key: str) -> Any:
    """The annotated type of a setting."""
    section, _, name = key.rpartition(".")
    return _types(_shape(section))[name]


@cache
def _types(shape: type[Struct]) -> dict[str, Any]:
    """Of a table's fields. msgspec evaluates all annotations each time it is asked: a tenth of the start."""
    return {field.name: field.type for field in msgspec.structs.fields(shape)}


def _shape(section: str) -> Any:
    shape: Any = Settings
    for name in section.split(".") if section else ():
        shape = _types(shape).get(name, shape)
    return shape


def _build(sources: Mapping[str, SettingSource]) -> Settings:
    tree: dict[str, Any] = {}
    for key, source in sources.items():
        section, _, name = key.rpartition(".")
        table = tree
        for part in section.split(".") if section else ():
            table = table.setdefault(part, {})
        table[name] = source.value
        kind = type_of(key)
        try:
            msgspec.convert(source.value, kind)
        except msgspec.ValidationError as error:
            words = str(error) if key in TABLES else _wanted(kind)
            raise _wrong(key, sources, words) from None
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


def _check_values(settings: Settings, sources: Mapping[str, SettingSource]) -> None:
    timeout = settings.agent.approval_timeout
    rules: list[tuple[str, bool, str]] = [
        ("server.port", 0 <= settings.server.port <= 65535, "a port is a number from 0 to 65535"),
        ("log.url", not settings.log.url or settings.log.url.startswith(("postgresql://", "postgres://")), _URL),
        *((f"cluster.{name}", all(map(_is_name, each)), _NAME) for name, each in _names(settings.cluster)),
        ("cluster.address", settings.cluster.address not in _WILDCARDS, _ADDRESS),
        ("cluster.capacity", 1 <= settings.cluster.capacity <= 100_000, "1 to 100000 sessions"),
        ("cluster.lease_seconds", 0.5 <= settings.cluster.lease_seconds <= 3600, "half a second to an hour"),
        ("cluster.port", 0 <= settings.cluster.port <= 65535, "a port is a number from 0 to 65535"),
        ("log.retention_hours", 0 <= settings.log.retention_hours <= _MOST_HOURS, "0 hours to 100 years"),
        ("log.disk_share", 0 < settings.log.disk_share <= 1, "more than 0, at most 1"),
        ("agent.max_steps", 1 <= settings.agent.max_steps <= 1000, "1 to 1000 steps"),
        ("agent.max_processes", settings.agent.max_processes >= 0, "0 or more"),
        ("agent.max_memory_mb", settings.agent.max_memory_mb >= 0, "0 or more"),
        ("sandbox.memory_mb", settings.sandbox.memory_mb >= 0, "0 or more"),
        ("sandbox.processes", settings.sandbox.processes >= 0, "0 or more"),
        ("sandbox.tmp_mb", settings.sandbox.tmp_mb >= 1, "1 or more"),
        (
            "sandbox.ports",
            all(0 < port < 65536 for port in settings.sandbox.ports),
            "each is a number from 1 to 65535",
        ),
        ("agent.approval_timeout", timeout is None or 0 < timeout <= _MOST_SECONDS, "seconds, more than 0"),
        ("agent.turn_idle_timeout", 0 < settings.agent.turn_idle_timeout <= _MOST_SECONDS, "seconds, more than 0"),
    ]
    rules += _rules_of_people(settings) + _rules_of_retention(settings.retention)
    for name, patterns in msgspec.structs.asdict(settings.approvals).items():
        if name != "reads":
            rules.append((f"approvals.{name}", all(map(_is_rule, patterns)), _RULE))
    for key, ok, rule in rules:
        if not ok:
            raise _wrong(key, sources, rule)


def _wrong(key: str, sources: Mapping[str, SettingSource], words: str) -> BadRequest:
    """What is missing was left out where the rest of its table was written."""
    table = key.rpartition(".")[0] + "."
    near = [each.origin for name, each in sources.items() if name.startswith(table) and each.origin != "default"]
    origin = sources[key].origin if sources[key].origin != "default" or not near else near[0]
    value = "(hidden)" if is_secret(key) else repr(shown(sources[key].value))
    return BadRequest(f"{origin}: {key} = {value}: {words}.", field=key)


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
_NAME = "1 to 100 letters, digits, dots, dashes or the like, without spaces, commas and slashes"
_WILDCARDS = ("", "0.0.0.0", "::")
_ADDRESS = "one address of this machine at which the other hosts reach it, not all of its addresses"
_RULE = "each is some text of at most 500 characters, and what stands between slashes is a regular expression"


def _names(said: ClusterSettings) -> list[tuple[str, list[str]]]:
    """Empty stands for the machine's name, but not among labels."""
    return [("host", [said.host or "-"]), ("place", [said.place or "-"]), ("labels", said.labels)]


def _is_name(text: str) -> bool:
    """They stand in addresses, in the names of task queues and in lists."""
    return 0 < len(text) <= 100 and text.isprintable() and not set(text) & set(" ,/\\?#")


def _is_rule(text: str) -> bool:
    if not text.strip() or len(text) > 500:
        return False
    try:
        re.compile(text[1:-1] if text.startswith("/") and text.endswith("/") else "")
    except (re.error, OverflowError, RecursionError):
        return False
    return True
