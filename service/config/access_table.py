"""`[access]` and `[oidc]`: sessions of people, limits of requests, and the provider at which people sign in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field, model_validator

from predrain.service.config.secret_file import load_ca_tls_context, read_secret_file

if TYPE_CHECKING:
    from predrain.service.access.oidc import OidcProvider


class AccessTable(BaseModel):
    """`[access]`: sessions of the page, and how much one caller may ask."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    session_hours: float = Field(
        default=12.0, gt=0, le=24 * 31, description="Hours after which the page asks to sign in again."
    )
    requests_per_second: float = Field(
        default=300.0,
        gt=0,
        description="Requests a second that one caller may send; ten seconds' worth of them at once.",
    )
    address_requests_per_second: float = Field(
        default=1_000.0,
        gt=0,
        description="The same for all callers of one address together, those that nobody knows among them.",
    )


class OidcTable(BaseModel):
    """`[oidc]`: people sign in at a provider (OpenID Connect) when `issuer` is set; so must `external_url` of
    `[service]` be."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    issuer: str = Field(
        default="",
        pattern=r"^$|^https://[^\s]+$|^http://(127\.0\.0\.1|localhost)[:/]?[^\s]*$",
        description="The provider's issuer, `https://login.example.org/realms/storage`; nobody is asked while it is "
        "empty.",
    )
    client_id: str = Field(default="", description="Name of predrain at the provider.")
    client_secret_file: Path | None = Field(
        default=None, description="File (0600) with its secret; a public client when it is not set."
    )
    ca: Path | None = Field(
        default=None,
        description="PEM file of who signed the provider's certificate; the system's when not set.",
    )
    scope: str = Field(
        default="openid profile email", description="Scopes that are requested; `openid` must be among them."
    )
    claim: str = Field(
        default="groups", description="Claim of the ID token that decides on the rights of a person."
    )
    read: tuple[str, ...] = Field(
        default=(), description="Values of the claim that let read; `*` lets everybody."
    )
    act: tuple[str, ...] = Field(default=(), description="Values that let read and act.")
    admin: tuple[str, ...] = Field(default=(), description="Values that let do everything.")

    @model_validator(mode="after")
    def _whole(self) -> OidcTable:
        if self.issuer and not self.client_id:
            raise ValueError("issuer needs client_id")
        if self.issuer and "openid" not in self.scope.split():
            raise ValueError("scope must have openid in it")
        if self.issuer and not (self.read or self.act or self.admin):
            raise ValueError("nobody could do anything: set read, act or admin to values of the claim")
        if "*" in (*self.act, *self.admin):
            raise ValueError("* is for read only: name who may act")
        return self

    def make_provider(self, returning: str) -> OidcProvider | None:
        """Return the provider that signs people in and sends them back to `returning`; None if none is set.

        Raises NoSecret, NoAuthority.
        """
        if not self.issuer:
            return None
        from predrain.service.access.oidc import ClaimGrants, OidcProvider
        from predrain.service.access.tokens import Scope

        by_scope = ((Scope.READ, self.read), (Scope.ACT, self.act), (Scope.ADMIN, self.admin))
        return OidcProvider(
            self.issuer,
            self.client_id,
            read_secret_file(self.client_secret_file, "client_secret_file of [oidc]")
            if self.client_secret_file
            else "",
            self.scope,
            ClaimGrants(self.claim, by_scope),
            returning,
            load_ca_tls_context(self.ca, "ca of [oidc]") if self.ca else None,
        )
