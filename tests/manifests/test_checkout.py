"""The checkout script, run by a real shell with a real git."""

import subprocess
from pathlib import Path

import pytest

from clusters.manifests import checkout
from clusters.manifests.values import CodeValues

GIT = ("git", "-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "init.defaultBranch=main")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one commit on main and another on the branch "next/step"."""
    folder = tmp_path / "repository"
    folder.mkdir()
    for arguments in (
        ["init", "--quiet"],
        ["commit", "--quiet", "--allow-empty", "-m", "first"],
        ["checkout", "--quiet", "-b", "next/step"],
        ["commit", "--quiet", "--allow-empty", "-m", "second"],
        ["checkout", "--quiet", "main"],
    ):
        subprocess.run([*GIT, *arguments], cwd=folder, check=True)
    return folder


def commit_of(repository: Path, ref: str) -> str:
    done = subprocess.run([*GIT, "rev-parse", ref], cwd=repository, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def run(tmp_path: Path, url: str, ref: str, protocols: str = "file") -> subprocess.CompletedProcess[str]:
    """The script of the init container, its folders moved under `tmp_path`."""
    workspace = tmp_path / "workspace"
    workspace.mkdir(exist_ok=True)
    variables = checkout.variables(CodeValues(image="git", url=url, ref=ref)) | {
        "CODE_FOLDER": str(workspace),
        "CODE_SECRET": str(tmp_path / "secret"),
        "CODE_REPORT": str(tmp_path / "report"),
        "GIT_CONFIG_VALUE_0": "*",
        "GIT_ALLOW_PROTOCOL": protocols,
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(tmp_path),
    }
    command = ["/bin/sh", "-c", checkout.SCRIPT]
    return subprocess.run(command, env=variables, cwd=tmp_path, capture_output=True, text=True, timeout=30, check=False)


@pytest.mark.parametrize("ref", ["HEAD", "main", "next/step"])
def test_the_commit_of_a_reference_is_checked_out_and_reported(tmp_path: Path, repository: Path, ref: str) -> None:
    done = run(tmp_path, f"file://{repository}", ref)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "report").read_text().strip() == commit_of(repository, ref)
    assert commit_of(tmp_path / "workspace", "HEAD") == commit_of(repository, ref)


def test_a_second_start_in_the_same_folder_works(tmp_path: Path, repository: Path) -> None:
    assert run(tmp_path, f"file://{repository}", "main").returncode == 0
    assert run(tmp_path, f"file://{repository}", "next/step").returncode == 0
    assert (tmp_path / "report").read_text().strip() == commit_of(repository, "next/step")


@pytest.mark.parametrize(
    "text", ["$(touch {}/owned)", "`touch {}/owned`", '"; touch {}/owned; "', "--upload-pack=touch {}/owned"]
)
def test_an_address_or_reference_never_becomes_a_command(tmp_path: Path, repository: Path, text: str) -> None:
    hostile = text.format(tmp_path)
    assert run(tmp_path, hostile, "main").returncode != 0
    assert run(tmp_path, f"file://{repository}", hostile).returncode != 0
    assert not (tmp_path / "owned").exists()
    assert not (tmp_path / "report").exists()


def test_only_https_and_ssh_are_spoken(tmp_path: Path, repository: Path) -> None:
    code = CodeValues(image="git", url="https://git.example/x", ref="HEAD")
    done = run(tmp_path, f"file://{repository}", "main", checkout.variables(code)["GIT_ALLOW_PROTOCOL"])
    assert done.returncode != 0
    assert "not allowed" in done.stderr


def test_credentials_come_from_the_mounted_secret_and_are_readable_by_their_owner_only() -> None:
    code = CodeValues(image="git", url="https://git.example/x", ref="HEAD", secret="deploy")
    mounts = checkout.container(code, {})["volumeMounts"]
    assert {"name": "git-credentials", "mountPath": "/etc/muster/git", "readOnly": True} in mounts
    assert checkout.volumes("deploy")[1] == {
        "name": "git-credentials",
        "secret": {"secretName": "deploy", "defaultMode": 0o400},
    }
