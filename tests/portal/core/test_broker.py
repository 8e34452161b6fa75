"""The broker on a real database: many processes come to it at once."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from django.db import connection as django_connection
from kombu import Connection, Queue
from pgmq.install import get_embedded_install_sql

from portal.core import broker
from portal.env import libpq_dsn

DATABASE = "muster_broker_{}"
QUEUE = Queue("cycle")


@pytest.fixture
def dsn(worker_id: str) -> Iterator[str]:
    """A database of its own, with the queue's SQL."""
    name = DATABASE.format(worker_id)
    server = {**django_connection.settings_dict, "NAME": "postgres"}
    with psycopg.connect(libpq_dsn(server), autocommit=True) as admin:
        admin.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        admin.execute(f"CREATE DATABASE {name}")
        made = libpq_dsn({**server, "NAME": name})
        with psycopg.connect(made) as conn:
            conn.execute(get_embedded_install_sql())
        yield made
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


def connect(dsn: str) -> Connection:
    options = {"conn_string": dsn, "init_extension": False, "use_notify": True, "pool_size": 2}
    broker.install()
    return Connection("pgmq://localhost", transport_options=options)


def triggers(dsn: str) -> int:
    with psycopg.connect(dsn) as conn:
        found = conn.execute("SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'trigger_notify%'").fetchone()
    assert found is not None
    return int(found[0])


def test_consumers_that_start_at_once_do_not_trip_over_each_other(dsn: str) -> None:
    def consume(_number: int) -> None:
        with connect(dsn) as connection, connection.Consumer(QUEUE):
            pass

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(consume, range(18)))

    assert triggers(dsn) == 1


def test_a_sender_makes_no_trigger(dsn: str) -> None:
    with connect(dsn) as connection:
        connection.Producer().publish({}, routing_key=QUEUE.name, declare=[QUEUE])

    assert triggers(dsn) == 0


def test_a_message_reaches_the_consumer(dsn: str) -> None:
    arrived: list[object] = []
    with (
        connect(dsn) as connection,
        connection.Consumer(QUEUE, callbacks=[lambda body, _message: arrived.append(body)]),
    ):
        connection.Producer().publish({"is": "here"}, routing_key=QUEUE.name, declare=[QUEUE])
        connection.drain_events(timeout=5)

    assert arrived == [{"is": "here"}]


def test_pgmq_is_our_transport() -> None:
    with connect("postgresql://nowhere") as connection:
        assert connection.get_transport_cls() is broker.Transport
