"""The service's certificate: loaded, its end known, and exchanged in place when its files change."""

from __future__ import annotations

import ssl
from datetime import datetime, timedelta
from pathlib import Path

import structlog

from predrain.data.refusal import Refusal

SOON = timedelta(days=14)
NO_CHECK_TIME = 0x200000
"""OpenSSL's X509_V_FLAG_NO_CHECK_TIME, which Python has no name for."""


class CertificateUnusable(Refusal):
    """The certificate or its key cannot be read, or they do not belong together."""


class Certificate:
    """One certificate chain and its key. Whoever connects after `follow` gets the new one; open connections stay."""

    def __init__(self, chain: Path, key: Path) -> None:
        """Raises CertificateUnusable."""
        self._chain, self._key = chain, key
        self.context = _context(chain, key)
        self.ends_at = ends(chain)
        self._seen = self._stamp()

    def follow(self) -> bool:
        """Take what the files say now, where they changed; returns whether they did. Raises CertificateUnusable; then
        the one before stays in force, until they change again."""
        stamp = self._stamp()
        if stamp == self._seen:
            return False
        self._seen = stamp
        # Tried on a context of its own: loading half of a pair into the one in use would break every handshake.
        _context(self._chain, self._key)
        self.context.load_cert_chain(self._chain, self._key)
        self.ends_at = ends(self._chain)
        structlog.get_logger().info("certificate exchanged", ends=self.ends_at.isoformat())
        return True

    def complaint(self, now: datetime) -> str | None:
        """What is to be said of its end, if anything."""
        return complaint(self._chain, self.ends_at, now)

    def _stamp(self) -> tuple[tuple[int, int, int], ...]:
        found = []
        for file in (self._chain, self._key):
            try:
                stat = file.stat()
                found.append((stat.st_mtime_ns, stat.st_size, stat.st_ino))
            except OSError:
                found.append((0, 0, 0))  # between two files, perhaps; it is said when it is there and no good
        return tuple(found)


def own(chain: Path) -> ssl.SSLContext:
    """Trusts this very certificate and no other, whatever names it bears, and also when it has ended: for who speaks to
    the service on its own machine, and may have to stop a drain then. Raises CertificateUnusable."""
    try:
        context = ssl.create_default_context(cafile=chain)
    except OSError as error:
        raise CertificateUnusable(_unusable(chain, error)) from error
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN | NO_CHECK_TIME
    return context


def ends(chain: Path) -> datetime:
    """When the first certificate in a PEM file ends. Raises CertificateUnusable."""
    from cryptography.x509 import load_pem_x509_certificate

    try:
        return load_pem_x509_certificate(chain.read_bytes()).not_valid_after_utc
    except (OSError, ValueError) as error:
        raise CertificateUnusable(_unusable(chain, error)) from error


def complaint(chain: Path, ends_at: datetime, now: datetime) -> str | None:
    """One sentence where a certificate has ended or soon ends; None while it is good."""
    if ends_at <= now:
        return (
            f"the certificate {chain} ended at {ends_at:%Y-%m-%d %H:%M}Z and every client refuses it; put a new one "
            "into its place, it is taken up without a restart"
        )
    if ends_at - now <= SOON:
        return (
            f"the certificate {chain} ends at {ends_at:%Y-%m-%d %H:%M}Z; put a new one into its place before"
        )
    return None


def _context(chain: Path, key: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        # Without a password of ours OpenSSL would ask for one at the terminal.
        context.load_cert_chain(chain, key, password="")
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise CertificateUnusable(_unusable(chain, error, key)) from error
    return context


def _unusable(chain: Path, error: Exception, key: Path | None = None) -> str:
    files = f"{chain} with the key {key}" if key else str(chain)
    why = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
    return (
        f"the certificate {files} cannot be used ({why}); tls_certificate and tls_key of [service] name a PEM chain "
        "and its unencrypted key, both readable by our user"
    )
