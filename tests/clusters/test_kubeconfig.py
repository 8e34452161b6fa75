"""A kubeconfig is read as data; whatever could run a command or read a file is refused by name."""

import base64
from typing import Any

import pytest
import yaml
from pytest_django import Settings

from clusters.k8s import kubeconfig
from clusters.k8s.connection import Connection
from portal.core.errors import InvalidInputError


def document(
    *, cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None, top: dict[str, Any] | None = None
) -> str:
    whole = {
        "current-context": "here",
        "contexts": [
            {"name": "other", "context": {"cluster": "x", "user": "x"}},
            {"name": "here", "context": {"cluster": "c", "user": "u"}},
        ],
        "clusters": [{"name": "c", "cluster": {"server": "https://k8s.example.org:6443", **(cluster or {})}}],
        "users": [{"name": "u", "user": {"token": "t0ken", **(user or {})}}],
    }
    return yaml.safe_dump(whole | (top or {}))


def refusal(text: str) -> str:
    with pytest.raises(InvalidInputError) as caught:
        kubeconfig.parse(text)
    assert list(caught.value.problems) == ["kubeconfig"]
    return " ".join(caught.value.problems["kubeconfig"])


def test_server_and_token_of_the_current_context_are_kept_and_nothing_else() -> None:
    kept = kubeconfig.parse(document(cluster={"extensions": [1]}, user={"extensions": [2]}))

    assert kept == Connection(server="https://k8s.example.org:6443", ca_data="", token="t0ken")


def test_the_token_does_not_show_where_the_connection_is_printed() -> None:
    assert "t0ken" not in repr(kubeconfig.parse(document()))


@pytest.mark.parametrize("field", sorted(kubeconfig._REFUSED_USER))
def test_a_user_that_brings_more_than_a_token_is_refused_by_name(field: str) -> None:
    assert f"user.{field} is refused" in refusal(document(user={field: {"command": "/bin/true"}}))


@pytest.mark.parametrize("field", sorted(kubeconfig._REFUSED_CLUSTER))
def test_a_cluster_that_weakens_or_diverts_the_connection_is_refused_by_name(field: str) -> None:
    assert f"cluster.{field} is refused" in refusal(document(cluster={field: "/etc/passwd"}))


def test_all_refusals_are_told_at_once() -> None:
    text = refusal(document(cluster={"proxy-url": "http://p"}, user={"exec": {"command": "id"}}))

    assert "cluster.proxy-url" in text
    assert "user.exec" in text


def test_a_switch_that_is_off_is_not_a_danger() -> None:
    assert kubeconfig.parse(document(cluster={"insecure-skip-tls-verify": False})).token == "t0ken"


@pytest.mark.parametrize(
    ("server", "why"),
    [
        ("ftp://k8s.example.org", "https://"),
        ("https://admin:pw@k8s.example.org", "user name or password"),
        ("https://k8s.example.org/?x=1", "query"),
        ("https://169.254.169.254/latest", "link-local"),
        ("http://k8s.example.org", "Plain HTTP"),
        ("https://k8s.example.org:99999", "not a URL"),
        ("https://", "name a host"),
        ("https://k8s.example.org/\nX", "plain ASCII"),
        (["https://k8s.example.org"], "must be a URL"),
        ("https://" + "a" * 300, "at most 300"),
    ],
)
def test_addresses_that_are_not_for_a_token_are_refused(server: object, why: str) -> None:
    text = refusal(document(cluster={"server": server}))

    assert "cluster.server" in text
    assert why in text


def test_plain_http_is_for_loopback_under_the_setting_alone(settings: Settings) -> None:
    local = document(cluster={"server": "http://127.0.0.1:8001"})
    settings.MUSTER_ALLOW_PLAIN_HTTP = False
    assert "Plain HTTP" in refusal(local)

    settings.MUSTER_ALLOW_PLAIN_HTTP = True
    assert kubeconfig.parse(local).server == "http://127.0.0.1:8001"
    assert "Plain HTTP" in refusal(document(cluster={"server": "http://10.0.0.1:8001"}))


def test_an_installation_may_list_the_hosts_that_clusters_live_on(settings: Settings) -> None:
    settings.MUSTER_CLUSTER_HOSTS = ["gpu.example.org"]

    assert "MUSTER_CLUSTER_HOSTS" in refusal(document())


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "mapping"),
        ("- 1", "mapping"),
        ("a: [", "not valid YAML"),
        ("[" * 3_000, "not valid YAML"),
        ("!!python/object/apply:os.system ['id']", "not valid YAML"),
        ("a" * 1_000_000, "1000000 characters"),
        ("contexts: []", "current-context"),
        (document(top={"current-context": "absent"}), "contexts has no entry"),
        (document(top={"users": []}), "users has no entry"),
        (document(top={"clusters": "none"}), "clusters has no entry"),
        (document(user={"token": ""}), "user.token is missing"),
        (document(user={"token": 5}), "user.token is missing"),
        (document(user={"token": "a\nHost: evil"}), "printable ASCII"),
        (document(cluster={"certificate-authority-data": "%%%"}), "certificate-authority-data"),
        (
            document(cluster={"certificate-authority-data": base64.b64encode(b"no pem").decode()}),
            "certificate-authority-data",
        ),
    ],
)
def test_broken_files_are_refused_with_the_field(text: str, why: str) -> None:
    assert why in refusal(text)
