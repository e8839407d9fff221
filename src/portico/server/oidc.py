"""Log in with an OpenID provider: the authorization code flow with PKCE, and every check of its response.

The attacks: a foreign page finishes a login in the browser of our user (state, bound to that browser by a cookie);
a code or response of another login, provider or client is substituted for ours (PKCE, nonce, the `iss` parameter,
issuer, audience, authorized party); a token is unsigned or signed by a third party (the provider's own keys,
asymmetric algorithms only); a response never ends. joserfc checks the signature; all other checks are here.
"""

import asyncio
import base64
import hashlib
import hmac
import secrets
import time
from importlib.util import find_spec
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import msgspec
from msgspec import Struct

from portico.features.people.people import Account
from portico.kernel.errors import BadRequest, Forbidden, Unreachable
from portico.server.origin import is_loopback
from portico.server.settings import OidcSettings

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Never `none`, and no shared secrets: otherwise our client secret could sign in the name of the provider."""
LEEWAY = 60
"""Allowed clock difference in seconds."""
_SECONDS = 15.0
"""Timeout of one call to the provider, from first to last byte."""
_BYTES = 1024 * 1024
_FRESH = 3600.0
"""How long the metadata and keys of the provider are cached, in seconds. Unknown keys trigger a new request."""
_AGAIN = 30.0
"""Minimum interval between such requests in seconds: anyone can send a token with an unknown key id."""
_CLAIM_CHARS = 255
"""Maximum length of a subject, from the specification."""


class Metadata(Struct):
    """The fields of the provider's metadata that we use."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str = ""
    token_endpoint_auth_methods_supported: list[str] = msgspec.field(default_factory=lambda: ["client_secret_basic"])
    authorization_response_iss_parameter_supported: bool = False


class Begun(Struct, frozen=True):
    """A login that was redirected to the provider and is not finished."""

    nonce: str
    verifier: str
    redirect: str
    browser: str
    """Hash of a secret in the cookie of that browser."""
    wanted: str
    """The page to open after the login."""


class _TokenAnswer(Struct):
    id_token: str = ""
    access_token: str = ""


def missing_package(settings: OidcSettings) -> str:
    """Return instructions if a provider is configured but the package that checks signatures is missing; else ""."""
    if not settings.issuer or find_spec("joserfc") is not None:
        return ""
    return "The login with OIDC (login.oidc.issuer) needs a package: pip install 'portico[oidc]', then restart."


class OidcProvider:
    def __init__(self, settings: OidcSettings, secret: str) -> None:
        self.settings = settings
        self._secret = secret
        self._metadata: tuple[float, Metadata] | None = None
        self._keys: tuple[float, Any] | None = None

    # -- there -------------------------------------------------------------------------------------------------

    async def address(self, state: str, begun: Begun) -> str:
        """Return the URL to which the browser is redirected for the login."""
        found = await self.metadata()
        challenge = base64.urlsafe_b64encode(hashlib.sha256(begun.verifier.encode()).digest()).rstrip(b"=").decode()
        query = {
            "response_type": "code",
            "client_id": self.settings.client_id,
            "redirect_uri": begun.redirect,
            "scope": " ".join(dict.fromkeys(["openid", *self.settings.request_scopes])),
            "state": state,
            "nonce": begun.nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        joint = "&" if "?" in found.authorization_endpoint else "?"
        return f"{found.authorization_endpoint}{joint}{urlencode(query)}"

    # -- and back ----------------------------------------------------------------------------------------------

    async def account(self, begun: Begun, code: str, issuer: str | None) -> Account:
        """Return the account that has logged in. `issuer` is the `iss` parameter of the response (RFC 9207)."""
        found = await self.metadata()
        if issuer != found.issuer and (issuer is not None or found.authorization_response_iss_parameter_supported):
            raise Forbidden("This answer comes from another provider than the one that was asked.")
        answer = await self._exchange(found, begun, code)
        if not answer.id_token:
            raise Forbidden("The provider sent no id token.")
        claims = check_claims(await self._verified(answer.id_token), found.issuer, self.settings.client_id, begun.nonce)
        if self._incomplete(claims) and found.userinfo_endpoint and answer.access_token:
            more = await self._get(found.userinfo_endpoint, answer.access_token)
            if more.get("sub") != claims["sub"]:
                raise Forbidden("The provider describes another person than the one who logged in.")
            claims = {**more, **claims}
        return account_of(claims, self.settings)

    def _incomplete(self, claims: dict[str, Any]) -> bool:
        wanted = {self.settings.person_claim, *(["email"] if self.settings.domains else [])}
        return not wanted | ({self.settings.groups_claim} if self.settings.groups else set()) <= claims.keys()

    async def _exchange(self, found: Metadata, begun: Begun, code: str) -> _TokenAnswer:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": begun.redirect,
            "code_verifier": begun.verifier,
            "client_id": self.settings.client_id,
        }
        headers = {"Accept": "application/json"}
        if self._secret and "client_secret_basic" in found.token_endpoint_auth_methods_supported:
            pair = f"{quote(self.settings.client_id, safe='')}:{quote(self._secret, safe='')}"
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        elif self._secret:
            form["client_secret"] = self._secret
        data = await self._call("POST", found.token_endpoint, headers, form)
        answer: _TokenAnswer = _decoded(data, _TokenAnswer, "token answer")
        return answer

    async def _verified(self, token: str) -> dict[str, Any]:
        from joserfc import jwt
        from joserfc.errors import JoseError

        for again in (False, True):
            keys = await self._keyset(again=again)
            try:
                decoded = jwt.decode(token, keys, algorithms=list(ALGORITHMS))
            except (JoseError, ValueError, TypeError, UnicodeError) as error:
                if again:
                    raise Forbidden("The id token is not signed by this provider.") from error
            else:
                return dict(decoded.claims)
        raise AssertionError  # the loop returns or raises

    async def _keyset(self, again: bool) -> Any:
        from joserfc.errors import JoseError
        from joserfc.jwk import KeySet

        now = time.monotonic()
        if self._keys is None or now - self._keys[0] > (_AGAIN if again else _FRESH):
            document = await self._get((await self.metadata()).jwks_uri)
            try:
                self._keys = now, KeySet.import_key_set(document)  # type: ignore[arg-type]
            except (JoseError, ValueError, TypeError, KeyError) as error:
                raise Unreachable("The provider's keys cannot be read.") from error
        return self._keys[1]

    async def metadata(self) -> Metadata:
        now = time.monotonic()
        if self._metadata is None or now - self._metadata[0] > _FRESH:
            issuer = self.settings.issuer
            data = await self._call("GET", f"{issuer.rstrip('/')}/.well-known/openid-configuration", {})
            found = _decoded(data, Metadata, "description")
            if found.issuer != issuer:
                raise Unreachable(f"The provider at {issuer!r} calls itself {found.issuer!r}: set login.oidc.issuer.")
            for address in (found.authorization_endpoint, found.token_endpoint, found.jwks_uri):
                check_address(address, issuer)
            self._metadata = now, found
        return self._metadata[1]

    async def _get(self, address: str, token: str = "") -> dict[str, Any]:
        headers = {"Accept": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        found: dict[str, Any] = _decoded(await self._call("GET", address, headers), dict, "answer")
        return found

    async def _call(self, method: str, address: str, headers: dict[str, str], form: Any = None) -> bytes:
        """Call the provider with limits on time and bytes, without redirects and without environment proxies."""
        import httpx  # not before the first login

        from portico.agents.certificates import certificates

        check_address(address, self.settings.issuer)
        # Includes a private certificate authority if SSL_CERT_FILE names one.
        verify = await asyncio.to_thread(certificates) if address.startswith("https:") else True
        pieces: list[bytes] = []
        try:
            async with (
                asyncio.timeout(_SECONDS),
                httpx.AsyncClient(trust_env=False, timeout=_SECONDS, verify=verify) as client,
                client.stream(method, address, headers=headers, data=form) as answer,
            ):
                async for piece in answer.aiter_bytes():
                    pieces.append(piece)
                    if sum(map(len, pieces)) > _BYTES:
                        raise Unreachable("The provider's answer is too long.")
        except (TimeoutError, httpx.HTTPError) as error:
            raise Unreachable(f"The provider {self.settings.issuer!r} does not answer.") from error
        if answer.status_code != 200:
            raise Forbidden(f"The provider refused this login ({answer.status_code}); try again.")
        return b"".join(pieces)


def _decoded(data: bytes, shape: Any, what: str) -> Any:
    try:
        return msgspec.json.decode(data, type=shape)
    except (ValueError, RecursionError) as error:
        raise Unreachable(f"The provider's {what} cannot be read.") from error


def check_address(address: str, issuer: str) -> None:
    """Require TLS, except on this machine: an eavesdropper could steal the code."""
    parts = urlsplit(address)
    local = is_loopback(urlsplit(issuer).hostname or "") and is_loopback(parts.hostname or "")
    if parts.scheme != "https" and not (parts.scheme == "http" and local):
        raise BadRequest(f"{address!r}: an OpenID provider is reached over https.", field="login.oidc.issuer")


def check_claims(claims: dict[str, Any], issuer: str, client: str, nonce: str) -> dict[str, Any]:
    """Check all that OpenID Connect Core 3.1.3.7 requires. Each rule below prevents an attack seen in practice."""
    now = time.time()
    audience, party, subject = claims.get("aud"), claims.get("azp"), claims.get("sub")
    audiences = [audience] if isinstance(audience, str) else audience if isinstance(audience, list) else []
    given = claims.get("nonce")
    rules = [
        (claims.get("iss") == issuer, "it was issued by somebody else"),
        (client in audiences, "it is for another client"),
        (len(audiences) == 1 or party is not None, "it is for several clients and does not say for which"),
        (party is None or party == client, "it was made for another client"),
        (_number(claims.get("exp")) > now - LEEWAY, "it has expired"),
        (0 < _number(claims.get("iat")) < now + LEEWAY, "it was issued in the future, or nobody knows when"),
        (_number(claims.get("nbf", 1)) < now + LEEWAY, "it is not valid yet"),
        (isinstance(given, str) and hmac.compare_digest(given.encode(), nonce.encode()), "it is of another login"),
        (isinstance(subject, str) and 0 < len(subject) <= _CLAIM_CHARS, "it does not say who it is about"),
    ]
    for holds, why in rules:
        if not holds:
            raise Forbidden(f"The id token is not accepted: {why}.")
    return claims


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0


def account_of(claims: dict[str, Any], settings: OidcSettings) -> Account:
    email = claims.get("email")
    verified = claims.get("email_verified") is True or settings.unverified_email
    address = email if isinstance(email, str) and verified and email.count("@") == 1 else ""
    name = address if settings.person_claim == "email" else claims.get(settings.person_claim)
    if not isinstance(name, str) or not name:
        hint = "a verified address" if settings.person_claim == "email" else f"the claim {settings.person_claim!r}"
        raise Forbidden(f"The provider does not tell {hint}, by which people are known here.")
    groups = claims.get(settings.groups_claim)
    listed = tuple(each for each in groups if isinstance(each, str)) if isinstance(groups, list) else ()
    return Account(name, settings.issuer, claims["sub"], address, listed)


def new_secret() -> str:
    return secrets.token_urlsafe(32)
