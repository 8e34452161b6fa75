"""Cron texts: taken and refused as Kubernetes does, and due when the clock on the wall says so."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusters.simulated import cron as simulated
from jobs.explain.problems import full_sentence
from jobs.jobspec import cron
from tests.jobspec.documents import TRAINING, problems_of

NOON = datetime(2026, 3, 27, 12, tzinfo=UTC)


def due(text: str, count: int = 3, zone: str = "Etc/UTC", after: datetime = NOON) -> list[str]:
    return [moment.strftime("%d.%m. %H:%M") for moment in cron.next_times(cron.parse(text), zone, after, count)]


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("* * * * *", ["27.03. 12:01", "27.03. 12:02", "27.03. 12:03"]),
        ("*/20 * * * *", ["27.03. 12:20", "27.03. 12:40", "27.03. 13:00"]),
        ("5/25 9-17/4 * * *", ["27.03. 13:05", "27.03. 13:30", "27.03. 13:55"]),
        ("0 3 * * mon-fri", ["30.03. 03:00", "31.03. 03:00", "01.04. 03:00"]),
        ("0 0 1 JAN,jul ?", ["01.07. 00:00", "01.01. 00:00", "01.07. 00:00"]),
        ("@hourly", ["27.03. 13:00", "27.03. 14:00", "27.03. 15:00"]),
        ("@weekly", ["29.03. 00:00", "05.04. 00:00", "12.04. 00:00"]),
        # With both kinds of day one of them is enough; a star with steps counts as a choice.
        ("0 0 13 * 5", ["03.04. 00:00", "10.04. 00:00", "13.04. 00:00"]),
        ("0 0 29 2 *", ["29.02. 00:00"]),
    ],
)
def test_a_text_comes_due_when_it_says(text: str, times: list[str]) -> None:
    assert due(text) == times


def test_an_hour_that_a_clock_change_skips_brings_no_run_and_one_that_it_repeats_two() -> None:
    berlin = "Europe/Berlin"
    assert due("30 2 * * *", 2, berlin, datetime(2026, 3, 28, 12, tzinfo=UTC)) == ["30.03. 00:30", "31.03. 00:30"]
    assert due("30 2 * * *", 3, berlin, datetime(2026, 10, 24, 12, tzinfo=UTC)) == [
        "25.10. 00:30",
        "25.10. 01:30",
        "26.10. 01:30",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("60 * * * *", "“60” is no minute: from 0 to 59."),
        ("* 24 * * *", "“24” is no hour: from 0 to 23."),
        ("* * 0 * *", "“0” is no day of the month: from 1 to 31."),
        ("* * * 13 *", "“13” is no month: from 1 to 12."),
        ("0 0 * * 7", "“7” is no day of the week: from 0 to 6."),
        ("* * * *", "A cron text has five fields"),
        ("0 0 0 * * *", "this has 6"),
        ("*/0 * * * *", "“*/0” is no minute"),
        ("5-1 * * * *", "“5-1” of the minute ends before it begins"),
        ("\uff2f 0 * * *", "is no minute"),
        ("0 0 31 2 *", "it would never come due"),
        ("0 0 30 feb *", "it would never come due"),
        ("@sometimes", "Possible: @yearly"),
        ("@every 10s", "A cron text has five fields"),
        ("TZ=UTC 0 0 * * *", "A cron text has five fields"),
        ("1," * 80 + "1 * * * *", "At most 100 characters"),
        ("99999999999999999999 * * * *", "is no minute: from 0 to 59"),
    ],
)
def test_a_text_that_never_comes_due_is_refused_with_its_field_and_limits(text: str, said: str) -> None:
    document = {**TRAINING, "workload": "cronjob", "schedule": {"cron": text}}
    [problem] = problems_of(document)
    assert problem.field == "schedule.cron"
    assert said in full_sentence(problem)


FIELDS = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 6)]


def _field(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    pair = st.tuples(number, number).map(lambda ends: f"{min(ends)}-{max(ends)}")
    steps = st.tuples(st.one_of(st.just("*"), pair), st.integers(1, 12)).map(lambda parts: f"{parts[0]}/{parts[1]}")
    return st.lists(st.one_of(st.just("*"), number.map(str), pair, steps), min_size=1, max_size=3).map(",".join)


TEXTS = st.tuples(*(_field(low, high) for low, high in FIELDS)).map(" ".join)
ZONES = st.sampled_from(["Etc/UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"])
MOMENTS = st.integers(1_704_067_200, 1_893_456_000).map(lambda second: datetime.fromtimestamp(second, UTC))


@given(TEXTS, ZONES, MOMENTS)
def test_each_time_fits_the_text_and_none_between_does(text: str, zone: str, after: datetime) -> None:
    """Held against the simulated cluster's reader, which looks minute by minute."""
    try:
        read = cron.parse(text)
    except cron.CronError:
        with pytest.raises(cron.CronError, match="cron_never"):
            cron.parse(text)
        return
    times = cron.next_times(read, zone, after, 3)
    moment: float | None = after.timestamp()
    for found in times:
        assert moment is not None
        moment = simulated.next_due(simulated.parse(text), zone, moment)
        assert moment is not None
        assert found == datetime.fromtimestamp(moment, UTC)
        wall = found.astimezone(ZoneInfo(zone))
        assert (wall.minute in read.minutes, wall.hour in read.hours, wall.month in read.months) == (True,) * 3
    assert times == sorted(set(times))
    assert all(found - after > timedelta(0) and found.second == 0 for found in times)


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused_by_both_readers(text: str) -> None:
    try:
        cron.parse(text)
    except cron.CronError:
        return
    simulated.parse(" ".join(text.split()))
