"""The binaries of a real control plane, built once from Go modules and kept outside the repository.

Each folder below `wrappers` is a Go module without code: its `tool` lines name what to build and its go.sum pins it
all. What it gives lies under ~/.cache/muster/kube (XDG_CACHE_HOME is honoured), by wrapper and by a hash of these
files, so that only the first run on a machine builds. KUBEBUILDER_ASSETS names a folder of ready ones instead.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

WRAPPERS = Path(__file__).resolve().parent / "wrappers"
VERSIONS = {"1.36": "v1.36.3", "1.37": "v1.37.2"}
ASSETS = "KUBEBUILDER_ASSETS"
_FLAGS = ("-trimpath",)
_GO_FALLBACK = Path("/usr/local/go/bin/go")
# Without these /version says nothing that a client could read: the release scripts set them.
_VERSION_PACKAGES = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
_NO_COMMIT = "0" * 40


class BuildError(Exception):
    """The binaries cannot be had; the text says what to do."""


@dataclass(frozen=True)
class Wrapper:
    """A folder below `wrappers`, its main packages by the name of the binary, and the version to stamp them with."""

    name: str
    packages: Mapping[str, str]
    stamp: str = ""

    @property
    def folder(self) -> Path:
        return WRAPPERS / self.name

    @property
    def link_flags(self) -> str:
        return " ".join(["-s", "-w", *_stamps(self.stamp)] if self.stamp else ["-s", "-w"])

    @property
    def key(self) -> str:
        """Changes whenever what we would build changes."""
        digest = hashlib.sha256()
        for name in ("go.mod", "go.sum"):
            digest.update((self.folder / name).read_bytes())
        digest.update(repr((sorted(self.packages.items()), _FLAGS, self.link_flags)).encode())
        return f"{self.name}-{digest.hexdigest()[:16]}"


def wrappers(version: str) -> list[Wrapper]:
    """What a control plane of this minor version ("1.36") is made of, the quick ones first."""
    kubernetes = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
    return [
        Wrapper("etcd", {"etcd": "go.etcd.io/etcd/server/v3"}),
        Wrapper("kwok", {"kwok": "sigs.k8s.io/kwok/cmd/kwok"}),
        Wrapper(
            f"kubernetes-{version}", {name: f"k8s.io/kubernetes/cmd/{name}" for name in kubernetes}, VERSIONS[version]
        ),
    ]


def binaries(version: str = "1.36") -> dict[str, Path]:
    """Every binary by name; builds what the cache does not hold yet and tells on stderr how long that took."""
    if folder := os.environ.get(ASSETS):
        return _ready_made(Path(folder), version)
    found: dict[str, Path] = {}
    for wrapper in wrappers(version):
        folder_of = built(wrapper)
        found |= {name: folder_of / name for name in wrapper.packages}
    return found


def built(wrapper: Wrapper) -> Path:
    """The folder with the wrapper's binaries. Whoever else wants the same ones waits, and finds them."""
    target = cache() / wrapper.key
    if target.is_dir():
        return target
    with _lock(cache() / f"{wrapper.key}.lock"):
        if not target.is_dir():
            _build(wrapper, target)
    return target


def cache() -> Path:
    """Where binaries are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "muster" / "kube"


def _build(wrapper: Wrapper, target: Path) -> None:
    began = time.monotonic()
    _say(f"building {wrapper.name} ({', '.join(wrapper.packages)})")
    with TemporaryDirectory(prefix=f".{wrapper.key}-", dir=target.parent) as scratch:
        output = Path(scratch) / "bin"
        output.mkdir()
        # A single binary is named by us; of several, each has its package's name.
        place = output / next(iter(wrapper.packages)) if len(wrapper.packages) == 1 else output
        flags = (*_FLAGS, "-ldflags", wrapper.link_flags, "-o", str(place))
        _go(wrapper, "build", *flags, *wrapper.packages.values())
        output.rename(target)  # whole or not at all
    _say(f"built {wrapper.name} in {time.monotonic() - began:.0f} s")


def _go(wrapper: Wrapper, *words: str) -> None:
    env = os.environ | {"CGO_ENABLED": "0", "GOWORK": "off"}
    done = subprocess.run([find_go(), *words], cwd=wrapper.folder, env=env, stdout=sys.stderr)
    if done.returncode:
        raise BuildError(f"go {' '.join(words)} failed in {wrapper.folder}")


def find_go() -> str:
    """The Go compiler."""
    if found := shutil.which("go"):
        return found
    if _GO_FALLBACK.exists():
        return str(_GO_FALLBACK)
    raise BuildError(f"Building Kubernetes needs Go 1.26 or newer. Install it, or name ready binaries in {ASSETS}.")


def _ready_made(folder: Path, version: str) -> dict[str, Path]:
    # Half a folder is refused: a scheduler of ours beside an API server of another version would test neither.
    names = [name for wrapper in wrappers(version) for name in wrapper.packages]
    if missing := [name for name in names if not os.access(folder / name, os.X_OK)]:
        raise BuildError(f"{ASSETS} names {folder}, which lacks {', '.join(missing)}.")
    return {name: folder / name for name in names}


def _stamps(version: str) -> Iterator[str]:
    major, minor, _patch = version.removeprefix("v").split(".")
    values = {
        "gitVersion": version,
        "gitMajor": major,
        "gitMinor": minor,
        "gitTreeState": "clean",
        "gitCommit": _NO_COMMIT,
    }
    for package in _VERSION_PACKAGES:
        for key, value in values.items():
            yield f"-X {package}.{key}={value}"


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # the kernel lets go when we end, however we end
        yield


def _say(text: str) -> None:
    print(f"-> {text}", file=sys.stderr, flush=True)
