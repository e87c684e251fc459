"""The service's certificate: loading it, reading its expiry, and reloading it in place when its files change."""

from __future__ import annotations

import ssl
from datetime import datetime, timedelta
from pathlib import Path

import structlog

from predrain.data.refusal import Refusal

SOON = timedelta(days=14)
NO_CHECK_TIME = 0x200000
"""OpenSSL's X509_V_FLAG_NO_CHECK_TIME, for which Python has no name."""


class CertificateUnusable(Refusal):
    """The certificate or its key cannot be read, or they do not belong together."""


class Certificate:
    """One certificate chain and its key. After `reload_if_changed` new connections get the new certificate; open ones
    stay.
    """

    def __init__(self, chain: Path, key: Path) -> None:
        """Load the certificate. Raises CertificateUnusable."""
        self._chain, self._key = chain, key
        self.context = _load_server_context(chain, key)
        self.ends_at = read_certificate_expiry(chain)
        self._seen = self._stamp()

    def reload_if_changed(self) -> bool:
        """Load the files again if they changed. Return whether they did. Raises CertificateUnusable; then the
        certificate before stays in force until the files change again.
        """
        stamp = self._stamp()
        if stamp == self._seen:
            return False
        self._seen = stamp
        # The pair is tried on a separate context first: half of a pair in the context in use would break
        # every handshake.
        _load_server_context(self._chain, self._key)
        self.context.load_cert_chain(self._chain, self._key)
        self.ends_at = read_certificate_expiry(self._chain)
        structlog.get_logger().info("certificate exchanged", ends=self.ends_at.isoformat())
        return True

    def describe_expiry(self, now: datetime) -> str | None:
        """Return a sentence about the certificate's expiry if it has expired or soon expires, else None."""
        return describe_certificate_expiry(self._chain, self.ends_at, now)

    def _stamp(self) -> tuple[tuple[int, int, int], ...]:
        found = []
        for file in (self._chain, self._key):
            try:
                stat = file.stat()
                found.append((stat.st_mtime_ns, stat.st_size, stat.st_ino))
            except OSError:
                found.append((0, 0, 0))  # perhaps being replaced; a bad file is reported when it is there
        return tuple(found)


def create_own_tls_context(chain: Path) -> ssl.SSLContext:
    """Return a TLS context that trusts exactly this certificate, under any name and also after its expiry.

    Clients on the service's own machine use the context; they may have to stop a drain after the expiry. Raises
    CertificateUnusable.
    """
    try:
        context = ssl.create_default_context(cafile=chain)
    except OSError as error:
        raise CertificateUnusable(_describe_unusable_files(chain, error)) from error
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN | NO_CHECK_TIME
    return context


def read_certificate_expiry(chain: Path) -> datetime:
    """Return the expiry of the first certificate in a PEM file. Raises CertificateUnusable."""
    from cryptography.x509 import load_pem_x509_certificate

    try:
        return load_pem_x509_certificate(chain.read_bytes()).not_valid_after_utc
    except (OSError, ValueError) as error:
        raise CertificateUnusable(_describe_unusable_files(chain, error)) from error


def describe_certificate_expiry(chain: Path, ends_at: datetime, now: datetime) -> str | None:
    """Return one sentence if a certificate has expired or soon expires, or None while it is valid."""
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


def _load_server_context(chain: Path, key: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        # Without an explicit password OpenSSL would ask for one at the terminal.
        context.load_cert_chain(chain, key, password="")
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise CertificateUnusable(_describe_unusable_files(chain, error, key)) from error
    return context


def _describe_unusable_files(chain: Path, error: Exception, key: Path | None = None) -> str:
    files = f"{chain} with the key {key}" if key else str(chain)
    why = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
    return (
        f"the certificate {files} cannot be used ({why}); tls_certificate and tls_key of [service] name a PEM chain "
        "and its unencrypted key, both readable by our user"
    )
