"""The init container that checks out git code into /workspace and reports the commit."""

from clusters.manifests.values import CodeValues, Json

FOLDER = "/workspace"
SECRET_FOLDER = "/etc/muster/git"  # noqa: S105  a path
CONTAINER = "code"
WORKSPACE_VOLUME = "workspace"
SECRET_VOLUME = "git-credentials"  # noqa: S105  a name
VOLUME_NAMES = frozenset({WORKSPACE_VOLUME, SECRET_VOLUME})
MOUNT: Json = {"name": WORKSPACE_VOLUME, "mountPath": FOLDER}

# The text is fixed: address and reference come in as variables, so nothing in them can become a command. The
# kubelet may start it again in a folder that holds half a checkout. The portal stores the reported commit.
SCRIPT = """\
set -eu
cd "$CODE_FOLDER"
if [ -f "$CODE_SECRET/ssh-privatekey" ]; then
  hosts="StrictHostKeyChecking=accept-new"
  if [ -f "$CODE_SECRET/known_hosts" ]; then hosts="UserKnownHostsFile=$CODE_SECRET/known_hosts"; fi
  export GIT_SSH_COMMAND="ssh -i $CODE_SECRET/ssh-privatekey -o IdentitiesOnly=yes -o $hosts"
fi
if [ -f "$CODE_SECRET/password" ]; then
  username='echo "username=$(cat "$CODE_SECRET/username")"'
  password='echo "password=$(cat "$CODE_SECRET/password")"'
  export GIT_CONFIG_COUNT=2 GIT_CONFIG_KEY_1=credential.helper
  export GIT_CONFIG_VALUE_1="!f() { $username; $password; }; f"
fi
git init --quiet .
git fetch --quiet --depth 1 --no-tags -- "$CODE_URL" "$CODE_REF"
git checkout --quiet --force --detach FETCH_HEAD
git rev-parse HEAD > "$CODE_REPORT"
"""


def container(code: CodeValues, resources: Json) -> Json:
    """The init container; it asks for what the main container asks for, which costs the pod nothing more."""
    mounts = [MOUNT]
    if code.secret is not None:
        mounts.append({"name": SECRET_VOLUME, "mountPath": SECRET_FOLDER, "readOnly": True})
    return {
        "name": CONTAINER,
        "image": code.image,
        "command": ["/bin/sh", "-c", SCRIPT],
        "env": [{"name": name, "value": value} for name, value in variables(code).items()],
        **resources,
        "volumeMounts": mounts,
    }


def variables(code: CodeValues) -> dict[str, str]:
    """What the script reads. Only https and ssh are spoken: git knows transports that run commands."""
    return {
        "CODE_URL": code.url,
        "CODE_REF": code.ref,
        "CODE_FOLDER": FOLDER,
        "CODE_SECRET": SECRET_FOLDER,
        "CODE_REPORT": "/dev/termination-log",
        "GIT_ALLOW_PROTOCOL": "https:ssh",
        "GIT_TERMINAL_PROMPT": "0",
        # The volume belongs to root, the image may run as somebody else.
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": FOLDER,
    }


def volumes(secret: str | None) -> list[Json]:
    """The folder of the checkout and, where there is one, the secret with its credentials."""
    volumes: list[Json] = [{"name": WORKSPACE_VOLUME, "emptyDir": {}}]
    if secret is not None:
        volumes.append({"name": SECRET_VOLUME, "secret": {"secretName": secret, "defaultMode": 0o400}})
    return volumes


def working_folder(code: CodeValues) -> str:
    """Where the main container starts."""
    return FOLDER if code.path is None else f"{FOLDER}/{code.path}"
