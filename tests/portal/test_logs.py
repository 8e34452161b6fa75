"""The log: a portal that is not ready yet answers its probes calmly; a failure elsewhere stays an error."""

import logging

import pytest
from django.test import Client, RequestFactory

from portal.logs import CalmProbes


@pytest.mark.django_db
def test_a_probe_that_is_told_to_wait_is_one_line_of_information(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    assert client.get("/readyz").status_code == 503

    told = [record for record in caplog.records if "503" in str(record.msg) or "Unavailable" in str(record.msg)]
    assert [record.levelname for record in told] == ["INFO"]
    assert told[0].msg["level"] == "info"  # type: ignore[index]  # structlog's dictionary
    assert not [record for record in caplog.records if record.levelno > logging.INFO]


@pytest.mark.parametrize(("path", "status"), [("/jobs/", 503), ("/readyz", 500)])
def test_any_other_failure_stays_an_error(path: str, status: int) -> None:
    event = {"event": "request_finished", "request": f"GET {path}", "code": status, "level": "error"}
    ours = logging.makeLogRecord({"msg": event, "levelno": logging.ERROR, "levelname": "ERROR"})
    djangos = logging.makeLogRecord({"status_code": status, "request": RequestFactory().get(path)})

    assert CalmProbes().filter(ours)
    assert (ours.levelno, event["level"]) == (logging.ERROR, "error")
    assert CalmProbes().filter(djangos)
