"""Validate the targets of the settings."""

import re

from portico.features.notices.notice import NotSent, is_quiet_form
from portico.features.notices.push import PREFIX, PushTarget
from portico.features.notices.send import Target, is_allowed, keys_of
from portico.kernel.errors import BadRequest
from portico.server.settings import NoticeCommand, NoticeSettings, Webhook


def targets_of(settings: NoticeSettings) -> dict[str, Target]:
    """The targets by name. Raises `BadRequest` for an invalid one."""
    found: dict[str, Target] = {}
    listed: list[tuple[str, Target]] = [("notices.webhooks", each) for each in settings.webhooks]
    listed += [("notices.commands", each) for each in settings.commands]
    for field, target in listed:
        problem = "the name is taken by another one" if target.name in found else target_problem(target, settings)
        if problem:
            raise BadRequest(f"{field}: {target.name!r}: {problem}.", field=field)
        found[target.name] = target
    return found


def target_problem(target: Target, settings: NoticeSettings) -> str:
    """The error of a target as text; empty: none."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,39}", target.name):
        return "a name has lower case letters, digits and hyphens, at most 40"
    if not is_quiet_form(target.quiet):
        return f"quiet = {target.quiet!r} is not of the form '22:00-07:00'"
    from zoneinfo import ZoneInfo  # late: most hosts have no targets

    try:
        ZoneInfo(target.zone or "UTC")
    except (KeyError, OSError, ValueError):
        return f"there is no time zone {target.zone!r}"
    if target.sessions not in ("all", "mine") and not target.sessions.startswith("session-"):
        return f"sessions = {target.sessions!r} is none of 'all', 'mine' and the id of a session"
    if isinstance(target, PushTarget):
        return _url_problem(target.endpoint, settings, from_client=True)
    if target.name.startswith(PREFIX):
        return f"names that begin with {PREFIX!r} are those of browsers"
    if isinstance(target, NoticeCommand):
        return "" if target.command and target.command[0] else "command is a list: a program and its arguments"
    return _url_problem(target.url, settings, from_client=False) or _secret_problem(target)


def _url_problem(text: str, settings: NoticeSettings, *, from_client: bool) -> str:
    import httpx  # late: most hosts have no webhooks

    try:
        url = httpx.URL(text)
        name = url.raw_host.decode("ascii")
    except (httpx.InvalidURL, ValueError) as error:
        return f"url is no address: {error}"
    if url.scheme not in ("http", "https") or not name:
        return "url is an address such as 'https://example.org/hooks'"
    if url.port is not None and not 0 < url.port < 65_536:
        return f"url has the port {url.port}, which is none"
    if url.userinfo or "@" in url.netloc.decode("ascii", "replace"):
        return "url holds a name or password before '@'; the signature says who sends"
    if url.scheme == "http" and not is_allowed(url, settings, from_client=from_client):
        form = "HOST:PORT is" if from_client else "host is"
        return f"url needs https, unless its {form} named in notices.allow_private"
    return ""


def _secret_problem(webhook: Webhook) -> str:
    if sum(map(bool, (webhook.secret, webhook.secret_env, webhook.secret_file))) != 1:
        return "it needs exactly one of secret, secret_env and secret_file"
    try:
        keys_of(webhook.secret) if webhook.secret else None
    except NotSent as error:
        return str(error)
    return ""
