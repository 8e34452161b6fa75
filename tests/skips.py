"""A pytest plugin: with CI=true a test may be skipped for the reasons below and for no other."""

import os

import pytest

# What the start of an allowed reason is, and why it may happen on a build machine.
ALLOWED = {
    "needs outside traces": "MUSTER_DATA names a folder of published traces that not every machine has",
    "needs Kubernetes 1.37": "a build machine builds 1.36 alone: the other takes seven minutes more",
    "no Python that another user may run": "root's interpreter may lie in root's own home",
}


class SkipGate:
    """Collects the skips of all workers and fails the run when one has no allowed reason."""

    def __init__(self) -> None:
        self.refused: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Look at a test that was skipped; an expected failure is none."""
        if report.skipped and not hasattr(report, "wasxfail"):
            self._judge(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Look at a module that was skipped as a whole."""
        if report.skipped:
            self._judge(report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Turn a run that is green but for its skips into a failed one."""
        if self.refused and exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """List the refused skips."""
        if self.refused:
            terminalreporter.section("skips that tests/skips.py does not allow", red=True)
            for test, reason in sorted(self.refused.items()):
                terminalreporter.line(f"{test}: {reason}")

    def _judge(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        reason = skip_reason(report)
        if not reason.startswith(tuple(ALLOWED)):
            self.refused[report.nodeid] = reason


def pytest_configure(config: pytest.Config) -> None:
    """Put the gate up where the reports of all workers come together."""
    if os.environ.get("CI") == "true" and not hasattr(config, "workerinput"):
        config.pluginmanager.register(SkipGate(), "muster-skip-gate")


def skip_reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Return the text that the skip was given."""
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ")
