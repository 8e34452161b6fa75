"""Take server, certificate authority and token out of a kubeconfig; refuse everything else by name.

A kubeconfig can run commands (exec, auth-provider) and read files of the machine that loads it. This one is
never loaded by a client: it is read as data, and what could do either is refused, not ignored.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any

import yaml
from cryptography.x509 import load_pem_x509_certificates
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from clusters.k8s.connection import AddressRefusedError, Connection, check_server
from portal.core.errors import InvalidInputError

MAX_CHARACTERS = 100_000
MAX_TOKEN = 16_384

_RUNS_COMMANDS = gettext_lazy("it runs a command on the portal's machine")
_READS_FILES = gettext_lazy("it names a file of the portal's machine")
_CERTIFICATES = gettext_lazy("client certificates cannot be revoked; use a token")
_PASSWORDS = gettext_lazy("passwords are not supported; use a token")
_ACTS_AS = gettext_lazy("the portal acts as itself only")
_REFUSED_CLUSTER = {
    "certificate-authority": _READS_FILES,
    "insecure-skip-tls-verify": gettext_lazy("the token would go to whoever answers"),
    "proxy-url": gettext_lazy("requests would go through an address that nobody checked"),
    "tls-server-name": gettext_lazy("the certificate must name the server's own host"),
}
_REFUSED_USER = {
    "exec": _RUNS_COMMANDS,
    "auth-provider": _RUNS_COMMANDS,
    "tokenFile": _READS_FILES,
    "client-certificate": _READS_FILES,
    "client-key": _READS_FILES,
    "client-certificate-data": _CERTIFICATES,
    "client-key-data": _CERTIFICATES,
    "username": _PASSWORDS,
    "password": _PASSWORDS,
    "as": _ACTS_AS,
    "as-uid": _ACTS_AS,
    "as-groups": _ACTS_AS,
    "as-user-extra": _ACTS_AS,
}


def parse(text: str) -> Connection:
    """Return the connection of the current context. Raise InvalidInputError that names each refused field."""
    document = _document(text)
    context = _entry(document, "contexts", _current_context(document), "context")
    cluster = _entry(document, "clusters", context.get("cluster"), "cluster")
    user = _entry(document, "users", context.get("user"), "user")
    problems = _refused("cluster", cluster, _REFUSED_CLUSTER) + _refused("user", user, _REFUSED_USER)
    if problems:
        raise _invalid(*problems)
    return Connection(server=_server(cluster), ca_data=_ca(cluster), token=_token(user))


def _document(text: str) -> Mapping[str, Any]:
    if len(text) > MAX_CHARACTERS:
        raise _invalid(
            _("The kubeconfig has %(length)d characters; at most %(limit)d are read.")
            % {"length": len(text), "limit": MAX_CHARACTERS}
        )
    try:
        document = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError):
        raise _invalid(_("The kubeconfig is not valid YAML.")) from None
    if not isinstance(document, dict):
        raise _invalid(_("The kubeconfig must be a YAML mapping with clusters, users and contexts."))
    return document


def _current_context(document: Mapping[str, Any]) -> object:
    name = document.get("current-context")
    if not name:
        raise _invalid(_("current-context is missing."))
    return name


def _entry(document: Mapping[str, Any], listing: str, name: object, key: str) -> Mapping[str, Any]:
    """Return the mapping `key` of the entry of `listing` that has this name."""
    entries = document.get(listing)
    for entry in entries if isinstance(entries, Sequence) and not isinstance(entries, str) else ():
        if isinstance(entry, dict) and name is not None and entry.get("name") == name:
            value = entry.get(key)
            return value if isinstance(value, dict) else {}
    raise _invalid(_("%(listing)s has no entry named %(name)s.") % {"listing": listing, "name": repr(name)[:100]})


def _refused(place: str, values: Mapping[str, Any], refused: Mapping[str, Any]) -> list[str]:
    # A switch that is off does nothing, and many tools write it out.
    return [
        _("%(field)s is refused: %(why)s.") % {"field": f"{place}.{field}", "why": why}
        for field, why in refused.items()
        if values.get(field) not in (None, False, "")
    ]


def _server(cluster: Mapping[str, Any]) -> str:
    server = cluster.get("server")
    if not isinstance(server, str) or not server or len(server) > 300:
        raise _invalid(_("cluster.server must be a URL of at most 300 characters."))
    try:
        check_server(server)
    except AddressRefusedError as error:
        raise _invalid(_("cluster.server is refused: %(why)s") % {"why": error}) from None
    return server.rstrip("/")


def _ca(cluster: Mapping[str, Any]) -> str:
    data = cluster.get("certificate-authority-data")
    if data in (None, ""):
        return ""
    try:
        pem = base64.b64decode(str(data), validate=True)
        load_pem_x509_certificates(pem)
        return pem.decode("ascii")
    except (binascii.Error, ValueError):
        raise _invalid(
            _("cluster.certificate-authority-data must be certificates in PEM form, encoded in base64.")
        ) from None


def _token(user: Mapping[str, Any]) -> str:
    token = user.get("token")
    if not isinstance(token, str) or not token:
        raise _invalid(_("user.token is missing: create a service account's token for the portal."))
    if len(token) > MAX_TOKEN or not all("!" <= character <= "~" for character in token):
        raise _invalid(_("user.token must be printable ASCII without spaces."))
    return token


def _invalid(*messages: str) -> InvalidInputError:
    return InvalidInputError({"kubeconfig": list(messages)}, code="kubeconfig_refused")
