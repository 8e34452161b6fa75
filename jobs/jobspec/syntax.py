"""How texts must look: names, labels, paths, image references, git addresses. ASCII on purpose."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from zoneinfo import available_timezones

from clusters import quantities

# The n-th run of a name is called `name-n`, which must still be a label value of at most 63 characters.
NAME_MAX = 40
LABEL_MAX = 63
SUBDOMAIN_MAX = 253
PATH_MAX = 255

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_DNS_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
_LABEL_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_ENV_NAME = re.compile(r"[A-Za-z_.-][A-Za-z0-9_.-]*")
_SECRET_KEY = re.compile(r"[-._A-Za-z0-9]+")
_PATH = re.compile(r"(/[A-Za-z0-9._@+-]+)+")
_RELATIVE_PATH = re.compile(r"[A-Za-z0-9._@+-]+(/[A-Za-z0-9._@+-]+)*")
_URL_PATH = re.compile(r"/[A-Za-z0-9._~!&'()*+,;=:@%/?-]*")
_HOST = r"[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*"
_GIT_URL = re.compile(
    rf"(https://|ssh://([A-Za-z0-9_][A-Za-z0-9._-]*@)?){_HOST}(:[0-9]{{1,5}})?(/[A-Za-z0-9._~%+@-]+)+/?"
)
_GIT_REF = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+@-]*(/[A-Za-z0-9_][A-Za-z0-9._+@-]*)*")
_PUBLIC_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")

_IMAGE_HOST = re.compile(rf"{_HOST}(:[0-9]{{1,5}})?")
_IMAGE_PART = r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*"
_IMAGE_PATH = re.compile(rf"{_IMAGE_PART}(?:/{_IMAGE_PART})*")
_IMAGE_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_IMAGE_DIGEST = re.compile(r"sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}")
_IMAGE_MAX = 512
_IMAGE_REPOSITORY_MAX = 255


@dataclass(frozen=True, slots=True)
class Text:
    """A rule for one text: at most `longest` characters, and `holds`; `code` names the fault otherwise."""

    longest: int
    code: str = ""
    holds: Callable[[str], object] | None = None


@dataclass(frozen=True, slots=True)
class ImageRef:
    """The parts of an image reference; `host` is empty where the cluster's default serves it."""

    host: str
    repository: str
    tag: str | None
    digest: str | None


def parse_image(text: str) -> ImageRef | None:
    """The parts of `[host[:port]/]repository[:tag][@digest]`, or None when the text is no such reference.

    A port is told from a tag by the slash behind it, so "images.example:5000/team/app" has no tag.
    """
    if len(text) > _IMAGE_MAX:
        return None
    rest, at, digest = text.partition("@")
    if at and not _IMAGE_DIGEST.fullmatch(digest):
        return None
    head, slash, tail = rest.rpartition("/")
    last, colon, tag = tail.partition(":")
    if colon and not _IMAGE_TAG.fullmatch(tag):
        return None
    host, repository = _split_host(head + slash + last)
    if host and not _IMAGE_HOST.fullmatch(host):
        return None
    if len(repository) > _IMAGE_REPOSITORY_MAX or not _IMAGE_PATH.fullmatch(repository):
        return None
    return ImageRef(host, repository, tag or None, digest or None)


def is_label_key(text: str) -> bool:
    """Whether it is `[prefix/]name` with a DNS prefix of at most 253 and a name of at most 63 characters."""
    prefix, slash, name = text.rpartition("/")
    if slash and not (len(prefix) <= SUBDOMAIN_MAX and _DNS_SUBDOMAIN.fullmatch(prefix)):
        return False
    return len(name) <= LABEL_MAX and _LABEL_NAME.fullmatch(name) is not None


def is_reserved_label(key: str) -> bool:
    """Whether the label belongs to Kubernetes or to Muster, which would overwrite it or be misled by it."""
    prefix = key.rpartition("/")[0]
    owners = ("kubernetes.io", "k8s.io", "muster.internal")
    return any(prefix == owner or prefix.endswith(f".{owner}") for owner in owners)


def is_path(text: str) -> bool:
    """Whether it is an absolute, normal path: no "..", no double or closing slash."""
    return _PATH.fullmatch(text) is not None and _has_no_dots(text)


def is_quantity(text: str) -> bool:
    """Whether Kubernetes would take it as a quantity."""
    try:
        quantities.parse(text)
    except quantities.QuantityError:
        return False
    return True


def _split_host(text: str) -> tuple[str, str]:
    first, slash, rest = text.partition("/")
    is_host = slash and ("." in first or ":" in first or first == "localhost")
    return (first, rest) if is_host else ("", text)


def _has_no_dots(text: str) -> bool:
    return not {".", ".."} & set(text.split("/"))


def _is_relative_path(text: str) -> bool:
    return _RELATIVE_PATH.fullmatch(text) is not None and _has_no_dots(text)


def _is_git_ref(text: str) -> bool:
    awkward = ".." in text or "@{" in text or text.endswith((".lock", "."))
    return _GIT_REF.fullmatch(text) is not None and not awkward


@lru_cache(maxsize=1)
def _time_zones() -> frozenset[str]:
    return frozenset(available_timezones() - {"localtime", "Factory"})


def _is_time_zone(text: str) -> bool:
    return text in _time_zones()


def _is_secret_key(text: str) -> bool:
    return _SECRET_KEY.fullmatch(text) is not None and _has_no_dots(text)


NAME = Text(NAME_MAX, "bad_name", _DNS_LABEL.fullmatch)
SLUG = Text(LABEL_MAX, "bad_name", _DNS_LABEL.fullmatch)
# Stands behind the name of the run's object, which is cut nowhere.
POD_SET = Text(12, "bad_name", _DNS_LABEL.fullmatch)
OBJECT_NAME = Text(SUBDOMAIN_MAX, "bad_name", _DNS_SUBDOMAIN.fullmatch)
PRIORITY = Text(LABEL_MAX, "bad_name", _DNS_SUBDOMAIN.fullmatch)
LEVEL = Text(LABEL_MAX, "bad_name", _LABEL_NAME.fullmatch)
FLAVOR = Text(LABEL_MAX, "bad_label_value", _LABEL_NAME.fullmatch)
LABEL_KEY = Text(SUBDOMAIN_MAX + 1 + LABEL_MAX, "bad_label_key", is_label_key)
LABEL_VALUE = Text(LABEL_MAX, "bad_label_value", _LABEL_VALUE.fullmatch)
DESCRIPTION = Text(2000)
IMAGE = Text(_IMAGE_MAX, "bad_image", parse_image)
ARGUMENT = Text(32_768)
ENV_NAME = Text(SUBDOMAIN_MAX, "bad_env_name", _ENV_NAME.fullmatch)
ENV_VALUE = Text(32_768)
SECRET_KEY = Text(SUBDOMAIN_MAX, "bad_secret_key", _is_secret_key)
MOUNT_PATH = Text(PATH_MAX, "bad_path", is_path)
REPOSITORY_PATH = Text(PATH_MAX, "bad_relative_path", _is_relative_path)
URL_PATH = Text(PATH_MAX, "bad_url_path", _URL_PATH.fullmatch)
GIT_URL = Text(512, "bad_git_url", _GIT_URL.fullmatch)
GIT_REF = Text(PATH_MAX, "bad_git_ref", _is_git_ref)
QUANTITY = Text(quantities.MAX_TEXT, "bad_quantity", is_quantity)
CRON = Text(100)
TIME_ZONE = Text(64, "bad_time_zone", _is_time_zone)
PUBLIC_ID = Text(64, "bad_id", _PUBLIC_ID.fullmatch)
