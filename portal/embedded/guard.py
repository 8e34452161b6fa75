"""A watchman that outlives us: if we are killed, it ends what did not go by itself."""

import contextlib
import subprocess
import sys

# Each line of its input adds or removes one process group. Its input ends when we do, however we end. On Linux the
# kernel has then already asked our children to stop; elsewhere the watchman asks them. Who still lives after the
# grace is killed. It is a shell script because it runs all the time and a shell takes a hundredth of Python's memory.
_SCRIPT = """
trap '' HUP INT TERM
groups=' '
while read -r sign group; do
    case $sign in
    +) groups="$groups$group " ;;
    -) case $groups in *" $group "*) groups="${groups%% $group *} ${groups#* $group }" ;; esac ;;
    esac
done
ask=$1 grace=$2
while :; do
    alive=
    for group in $groups; do
        kill -s "$ask" -- "-$group" 2>/dev/null && alive=yes
    done
    [ -n "$alive" ] || exit 0
    ask=0
    [ "$grace" -gt 0 ] || ask=KILL
    grace=$((grace - 1))
    sleep 1
done
"""


class Guard:
    """Knows the process groups that must not outlive us. `grace_s`: whole seconds from our end to their killing."""

    def __init__(self, *, grace_s: int) -> None:
        ask = "0" if sys.platform == "linux" else "TERM"  # signal 0 only looks
        self._shell = subprocess.Popen(  # noqa: S603 -- the script above
            ["sh", "-c", _SCRIPT, "muster-guard", ask, str(grace_s)],  # noqa: S607 -- every system's shell
            stdin=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def add(self, group: int) -> None:
        """Watch over a process group."""
        self._tell(f"+ {group}")

    def remove(self, group: int) -> None:
        """Forget a group that has ended: its number may soon be another's."""
        self._tell(f"- {group}")

    def close(self) -> None:
        """Let the watchman go; it ends what it still knows of."""
        with contextlib.suppress(BrokenPipeError):
            self._shell.communicate()

    def _tell(self, line: str) -> None:
        if self._shell.stdin is not None:
            with contextlib.suppress(BrokenPipeError):  # somebody killed it: the kernel's signal remains
                self._shell.stdin.write(line + "\n")
                self._shell.stdin.flush()
