"""An OpenID provider for tests that does as it is told: honest unless a trick says otherwise."""

import asyncio
import base64
import contextlib
import hashlib
import secrets
import socket
import time
from collections.abc import AsyncIterator, Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import uvicorn
from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

Json = dict[str, Any]
CLIENT, SECRET = "portico", "s3cret/+ of:this client"
KEY = RSAKey.generate_key(2048, {"kid": "k1", "use": "sig"})
OTHER_KEY = RSAKey.generate_key(2048, {"kid": "k1", "use": "sig"})


class Provider:
    def __init__(self) -> None:
        self.issuer = ""
        self.key = KEY
        self.sub = "sub-1"
        self.user: Json = {"email": "ann@example.org", "email_verified": True}
        self.metadata: Json = {}
        """What its description says otherwise."""
        self.claims: Callable[[Json], Json] = lambda claims: claims
        self.sign: Callable[[Json], str] = self._sign
        self.token: Callable[[Json], Response] = JSONResponse
        self.userinfo: Callable[[Json], Json] = lambda found: found
        self.called: list[str] = []
        self._codes: dict[str, Json] = {}

    def _sign(self, claims: Json) -> str:
        return jwt.encode({"alg": "RS256", "kid": "k1"}, claims, self.key)

    def authorize(self, address: str) -> Json:
        """The browser's visit here: what it is sent back with."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        assert asked["code_challenge_method"] == "S256"
        assert asked["client_id"] == CLIENT
        code = secrets.token_hex(8)
        self._codes[code] = asked
        return {"code": code, "state": asked["state"], "iss": self.issuer}

    # -- what the host asks ------------------------------------------------------------------------------------

    async def describe(self, request: Request) -> Response:
        self.called.append("describe")
        found = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "userinfo_endpoint": f"{self.issuer}/me",
            "authorization_response_iss_parameter_supported": True,
        }
        return JSONResponse(found | self.metadata)

    async def keys(self, request: Request) -> Response:
        return JSONResponse({"keys": [KEY.as_dict(private=False)]})

    async def exchange(self, request: Request) -> Response:
        self.called.append("token")
        form = {name: values[0] for name, values in parse_qs((await request.body()).decode()).items()}
        asked = self._codes.pop(form.get("code", ""), None)
        pair = base64.b64decode(request.headers["authorization"].removeprefix("Basic ")).decode()
        assert pair == "portico:s3cret%2F%2B%20of%3Athis%20client"
        challenge = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).rstrip(b"=")
        if (
            asked is None
            or challenge.decode() != asked["code_challenge"]
            or form["redirect_uri"] != asked["redirect_uri"]
        ):
            return JSONResponse({"error": "invalid_grant"}, 400)
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT, "sub": self.sub, "nonce": asked["nonce"]}
        claims |= {"iat": now, "exp": now + 300}
        answer = {"access_token": "at", "token_type": "Bearer", "id_token": self.sign(self.claims(claims))}
        return self.token(answer)

    async def me(self, request: Request) -> Response:
        assert request.headers["authorization"] == "Bearer at"
        return JSONResponse(self.userinfo({"sub": self.sub, **self.user}))


@contextlib.asynccontextmanager
async def provider() -> AsyncIterator[Provider]:
    found = Provider()
    app = Starlette(
        routes=[
            Route("/.well-known/openid-configuration", found.describe),
            Route("/keys", found.keys),
            Route("/token", found.exchange, methods=["POST"]),
            Route("/me", found.me),
        ]
    )
    listening = socket.create_server(("127.0.0.1", 0))
    found.issuer = f"http://127.0.0.1:{listening.getsockname()[1]}"
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
    serving = asyncio.ensure_future(server.serve([listening]))
    try:
        yield found
    finally:
        server.should_exit = True
        await serving


def unsigned(claims: Json) -> str:
    parts = ({"alg": "none", "typ": "JWT"}, claims)
    encoded = [base64.urlsafe_b64encode(msgspec.json.encode(part)).rstrip(b"=").decode() for part in parts]
    return ".".join([*encoded, ""])


def signed_with_secret(secret: bytes) -> Callable[[Json], str]:
    return lambda claims: jwt.encode({"alg": "HS256", "kid": "k1"}, claims, OctKey.import_key(secret))


def redirect_elsewhere(answer: Json) -> Response:
    return RedirectResponse("http://127.0.0.1:9/token", 307)
