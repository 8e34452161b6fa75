"""Fetch the vendored front-end files again: `python static/vendor/refresh.py`.

Needs npm (users of Muster do not). Versions are pinned here; the manifest beside this file records what
was fetched, and a test compares it with the committed files.
"""

import hashlib
import json
import re
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

VENDOR = Path(__file__).resolve().parent

# A dangling source map reference stops the manifest storage of static files.
SOURCE_MAP = re.compile(rb"\n?(//[#@] sourceMappingURL=\S+|/\*[#@] sourceMappingURL=\S+ \*/)\s*$")

ARABIC = "ibm-plex-sans-arabic"


@dataclass(frozen=True)
class Package:
    """One npm package and the files that are taken from it (path in the package -> path below vendor)."""

    name: str
    version: str
    files: dict[str, str]


def _fonts(family: str, subset: str, weights: tuple[int, ...]) -> dict[str, str]:
    names = [f"{family}-{subset}-{weight}-normal.woff2" for weight in weights]
    return {f"files/{name}": f"fonts/{name}" for name in names} | {"LICENSE": f"fonts/{family}.LICENSE.txt"}


PACKAGES = (
    Package(
        "bootstrap",
        "5.3.9",
        {
            "dist/css/bootstrap.min.css": "bootstrap/bootstrap.min.css",
            "dist/css/bootstrap.rtl.min.css": "bootstrap/bootstrap.rtl.min.css",
            "dist/js/bootstrap.bundle.min.js": "bootstrap/bootstrap.bundle.min.js",
            "LICENSE": "bootstrap/LICENSE.txt",
        },
    ),
    Package(
        "plotly.js-cartesian-dist-min",
        "4.1.1",
        {"plotly-cartesian.min.js": "plotly/plotly-cartesian.min.js", "LICENSE": "plotly/LICENSE.txt"},
    ),
    Package("@fontsource/ibm-plex-sans", "5.3.0", _fonts("ibm-plex-sans", "latin", (400, 500, 600))),
    Package("@fontsource/ibm-plex-mono", "5.3.0", _fonts("ibm-plex-mono", "latin", (400, 500))),
    Package(f"@fontsource/{ARABIC}", "5.3.0", _fonts("ibm-plex-sans-arabic", "arabic", (400, 500, 600))),
)


def main() -> None:
    """Fetch every package, write its files, Plotly's own style rules and the manifest."""
    entries = [_fetch(package) for package in PACKAGES]
    rules = plotly_rules((VENDOR / "plotly/plotly-cartesian.min.js").read_text())
    (VENDOR / "plotly/plotly-global.css").write_text(rules)
    manifest = {"packages": entries, "derived": {"plotly/plotly-global.css": _sha256(rules.encode())}}
    (VENDOR / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")


def plotly_rules(bundle: str) -> str:
    """Return the style rules that Plotly adds to a page at run time, as the text of a stylesheet.

    The content security policy forbids it to add them, so they are linked as a file. They stand in the
    bundle as one object, with X for a chart and Y for its notifier.
    """
    start = bundle.index('{"X,X div"') + 1
    rules = bundle[start : bundle.index("};for(", start)]
    pairs = re.findall(r"""(?:"([^"]+)"|(\w+)):("(?:[^"]*)"|'(?:[^']*)')""", rules)
    return "".join(f"{_selector(quoted or bare)}{{{body[1:-1]}}}\n" for quoted, bare, body in pairs)


def _selector(short: str) -> str:
    return short.replace("X", ".js-plotly-plot .plotly").replace("Y", ".plotly-notifier")


def _fetch(package: Package) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        spec = f"{package.name}@{package.version}"
        subprocess.run(["npm", "pack", "--silent", spec], cwd=folder, check=True, stdout=subprocess.DEVNULL)  # noqa: S603, S607
        archive = next(Path(folder).glob("*.tgz"))
        files = {target: _sha256(content) for target, content in _written(package, archive)}
        digest = _sha256(archive.read_bytes())
    return {"name": package.name, "version": package.version, "sha256": digest, "files": files}


def _written(package: Package, archive: Path) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(archive) as tar:
        for source, target in package.files.items():
            member = tar.extractfile(f"package/{source}")
            if member is None:
                raise FileNotFoundError(f"{package.name} has no file {source}")
            content = SOURCE_MAP.sub(b"\n", member.read())
            path = VENDOR / target
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            yield target, content


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


if __name__ == "__main__":
    main()
