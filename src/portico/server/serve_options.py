"""The options of `portico serve`, and checks of the settings at the start and at every change."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct, field

from portico.features.approvals.policy import Rules
from portico.features.jobs.source import EntrySource, find_entry
from portico.features.notices.targets import targets_of
from portico.kernel.errors import BadRequest
from portico.server.home import Home
from portico.server.login import secret_of
from portico.server.oidc import check_address as check_provider
from portico.server.origin import is_loopback, is_origin
from portico.server.proxy import Proxies, ProxyLogin, check_root_path
from portico.server.settings import ApprovalSettings, Settings


class ServeOptions(Struct):
    """The options of `portico serve`."""

    home: Home
    flags: dict[str, Any] = field(default_factory=dict)
    agents: Sequence[str] = ()
    script: Path | None = None
    script_delay: float = 0.0
    allow_remote: bool = False
    with_token: bool = True
    test: bool = False
    entry: Path | None = None
    test_folder: Path = Path("test")
    api_level: str = "latest"


def entry_source(options: ServeOptions) -> EntrySource | None:
    """Return the source of the entry. In test mode, only a file given explicitly: tests install their own."""
    if options.test and options.entry is None:
        return None
    return EntrySource(find_entry(options.entry, Path.cwd()), old=options.api_level == "000")


def check_address(host: str, options: ServeOptions) -> None:
    """Require a token and --allow-remote for every address that is not loopback."""
    if is_loopback(host):
        return
    if not options.with_token:
        raise BadRequest(f"--without-token works on loopback only, not on {host!r}.", field="host")
    if not options.allow_remote:
        raise BadRequest(
            f"{host!r} can be reached from other machines. Say --allow-remote if that is meant.", field="host"
        )


def check_settings(settings: Settings, options: ServeOptions) -> None:
    """Run the checks that the type of a single value does not cover."""
    if not settings.server.unix_socket:
        check_address(settings.server.host, options)
    check_origins(settings.security.allow_origins)
    targets_of(settings.notices)
    Proxies(settings.server.trusted_proxies)
    check_root_path(settings.server.root_path)
    proxy_login(settings)
    if settings.login.oidc.issuer:
        check_provider(settings.login.oidc.issuer, settings.login.oidc.issuer)
    public = settings.server.public_url
    if public and not (urlsplit(public).scheme in ("http", "https") and urlsplit(public).hostname):
        raise BadRequest(f"{public!r} is not an address such as 'https://box.example'.", field="server.public_url")


def proxy_login(settings: Settings) -> ProxyLogin | None:
    proxy = settings.login.proxy
    if not proxy.header:
        return None
    return ProxyLogin(
        proxy.header, secret_of(proxy.secret, proxy.secret_file), Proxies(settings.server.trusted_proxies)
    )


def check_origins(origins: Sequence[str]) -> None:
    for origin in origins:
        if not is_origin(origin):
            raise BadRequest(f"{origin!r} is not an origin such as 'https://example.org'.", field="allow_origins")


def settings_rules(approvals: ApprovalSettings) -> Rules:
    """Convert the section `[approvals]` to rules."""
    return Rules(
        "setting",
        reads=approvals.reads,
        edits={pattern.removeprefix("!"): not pattern.startswith("!") for pattern in approvals.edits},
        commands=dict.fromkeys(approvals.allow_commands, True) | dict.fromkeys(approvals.ask_commands, False),
        refused=tuple(approvals.deny_commands),
    )
