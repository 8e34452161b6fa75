"""How the binaries are found: without a Go compiler, which these tests do not need."""

import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.kube import __main__ as main
from tests.kube import build, kueue
from tests.kube.build import ASSETS, BuildError, binaries, built, wrappers

NAMES = {"etcd", "kwok", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"}


def fill(folder: Path, names: set[str]) -> None:
    for name in names:
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)


def test_ready_binaries_are_used_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path, NAMES)
    monkeypatch.setenv(ASSETS, str(tmp_path))

    assert binaries() == {name: tmp_path / name for name in NAMES}


def test_a_folder_that_lacks_one_is_refused_and_the_one_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, NAMES - {"kube-scheduler"})
    monkeypatch.setenv(ASSETS, str(tmp_path))

    with pytest.raises(BuildError, match="kube-scheduler"):
        binaries()


@pytest.mark.parametrize("parts", [*(wrappers(version) for version in build.VERSIONS), [kueue.WRAPPER]])
def test_wrappers_hold_no_code_and_pin_what_they_name(parts: list[build.Wrapper]) -> None:
    for wrapper in parts:
        assert {path.name for path in wrapper.folder.iterdir()} == {"go.mod", "go.sum"}
        text = (wrapper.folder / "go.mod").read_text()
        for package in wrapper.packages.values():
            assert package in text
        assert wrapper.stamp in text


def test_what_was_built_is_found_and_a_changed_sum_builds_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "WRAPPERS", tmp_path / "wrappers")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    wrapper = build.Wrapper("thing", {"thing": "example.org/thing"})
    wrapper.folder.mkdir(parents=True)
    for name in ("go.mod", "go.sum"):
        (wrapper.folder / name).write_text(name)
    before = wrapper.key
    (build.cache() / before).mkdir(parents=True)

    assert built(wrapper) == tmp_path / "cache" / "muster" / "kube" / before
    (wrapper.folder / "go.sum").write_text("another")
    assert wrapper.key != before


def test_a_build_that_fails_leaves_nothing_to_be_taken_for_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go = tmp_path / "bin" / "go"
    go.parent.mkdir()
    go.write_text("#!/bin/sh\nexit 1\n")
    go.chmod(0o755)
    monkeypatch.setenv("PATH", str(go.parent))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (wrapper, *_others) = wrappers("1.36")

    with pytest.raises(BuildError, match="failed"):
        built(wrapper)

    assert [path.name for path in build.cache().iterdir()] == [f"{wrapper.key}.lock"]


def test_without_a_compiler_the_command_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(build, "_GO_FALLBACK", tmp_path / "go")
    monkeypatch.setattr(signal, "signal", lambda *_arguments: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    assert main.main(["--build"]) == 1

    assert f"needs Go 1.26 or newer. Install it, or name ready binaries in {ASSETS}" in capsys.readouterr().err


def test_two_that_want_the_same_build_it_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go = tmp_path / "bin" / "go"
    go.parent.mkdir()
    # The word behind -o is the file to make.
    go.write_text(f'#!/bin/sh\necho once >>{tmp_path}/calls\n/bin/sleep 0.5\necho made >"$6"\n')
    go.chmod(0o755)
    monkeypatch.setenv("PATH", str(go.parent))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (wrapper, *_others) = wrappers("1.36")

    with ThreadPoolExecutor(2) as pool:
        folders = list(pool.map(built, [wrapper, wrapper]))

    assert [(folder / "etcd").read_text() for folder in folders] == ["made\n", "made\n"]
    assert (tmp_path / "calls").read_text() == "once\n"
