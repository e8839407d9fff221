"""TLS with the certificate from the settings. It is reloaded when its files change, without a restart."""

import logging
import ssl
from pathlib import Path

from portico.kernel.errors import BadRequest
from portico.server.home import stamp
from portico.server.settings import ServerSettings

logger = logging.getLogger("portico.tls")

Stamps = tuple[tuple[int, int] | None, ...]


class Certificate:
    def __init__(self, settings: ServerSettings) -> None:
        if not settings.tls_key:
            raise BadRequest("--tls-cert needs --tls-key too.", field="server.tls_key")
        self.path = Path(settings.tls_cert).expanduser().absolute()
        self._key = Path(settings.tls_key).expanduser().absolute()
        self._stamps = self._look()
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._load()

    def _load(self) -> None:
        try:
            self.context.load_cert_chain(self.path, self._key)
        except OSError as error:  # ssl.SSLError too
            raise BadRequest(
                f"The certificate {str(self.path)!r} with the key {str(self._key)!r} cannot be used: {error}.",
                field="server.tls_cert",
            ) from error

    def _look(self) -> Stamps:
        return stamp(self.path), stamp(self._key)

    def reload(self) -> bool:
        """Load a changed certificate for new connections; return whether one was loaded. An invalid one is ignored."""
        now = self._look()
        if now == self._stamps:
            return False
        self._stamps = now
        try:
            # First into an unused context: a failed load leaves a context with half of a pair.
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self.path, self._key)
            self._load()
        except (OSError, BadRequest) as error:
            logger.error("the new certificate is not taken over: %s", error)
            return False
        logger.info("a new certificate is in use: %s", self.path)
        return True
