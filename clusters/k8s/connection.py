"""What is needed to reach a cluster, and which addresses may be reached at all."""

import ipaddress
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import SplitResult, urlsplit

from django.conf import settings
from django.utils.translation import gettext as _


class ClusterAccess(Protocol):
    """Anything that knows the way to a cluster, such as its row."""

    @property
    def server(self) -> str: ...

    @property
    def ca_data(self) -> str: ...

    @property
    def token(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Connection:
    """Server URL, certificate authority (PEM, empty for the system's own) and bearer token of one cluster."""

    server: str
    ca_data: str = ""
    token: str = field(default="", repr=False)

    @classmethod
    def of(cls, access: ClusterAccess) -> "Connection":
        """Copy the three values that matter out of a row."""
        return cls(server=access.server, ca_data=access.ca_data, token=access.token)


class AddressRefusedError(ValueError):
    """An address that this installation does not talk to; the text says why, for people."""


def check_server(server: str) -> None:
    """Raise AddressRefusedError unless the portal may send a cluster's token to this URL."""
    parts = _split(server)
    if parts.query or parts.fragment:
        raise AddressRefusedError(_("The server URL must not have a query or a fragment."))
    host = parts.hostname or ""
    if _is_link_local(host):
        # Where clouds serve their machines' credentials.
        raise AddressRefusedError(_("%(host)s is a link-local address.") % {"host": host})
    allowed = settings.MUSTER_CLUSTER_HOSTS
    if allowed and host not in allowed:
        raise AddressRefusedError(_("%(host)s is not in MUSTER_CLUSTER_HOSTS.") % {"host": host})
    if parts.scheme == "http" and not (settings.MUSTER_ALLOW_PLAIN_HTTP and is_loopback(host)):
        raise AddressRefusedError(
            _("Plain HTTP would send the token in the clear: use https (http only to loopback, if allowed).")
        )


def check_url(url: str) -> None:
    """Raise AddressRefusedError unless this is an http or https URL with a host and without user info."""
    _split(url)


def is_loopback(host: str) -> bool:
    """Return whether the host is this machine itself, by literal address or as "localhost"."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        port_is_valid = parts.port != 0
    except ValueError:
        raise AddressRefusedError(_("This is not a URL.")) from None
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_is_valid:
        raise AddressRefusedError(_("The URL must start with https:// or http:// and name a host."))
    if parts.username is not None or parts.password is not None:
        raise AddressRefusedError(_("The URL must not carry a user name or password."))
    if not url.isascii() or any(character.isspace() for character in url):
        raise AddressRefusedError(_("The URL must be plain ASCII without spaces."))
    return parts


def _is_link_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_link_local
    except ValueError:
        return False
