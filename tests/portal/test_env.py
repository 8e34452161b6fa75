"""What the environment of a process says to clients of the database that read no settings."""

import json
import os
import subprocess
import sys

SAYS = "import json, os, portal.settings; print(json.dumps({k: v for k, v in os.environ.items() if k[:2] == 'PG'}))"


def test_the_brokers_client_gets_the_time_limit_and_the_tls_of_the_databases_url() -> None:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "DATABASE_", "BROKER_"))}
    env |= {"MUSTER_DEMO": "1", "DATABASE_URL": "postgres://muster@db/muster?sslmode=verify-full&sslrootcert=/ca.crt"}

    done = subprocess.run([sys.executable, "-c", SAYS], env=env, capture_output=True, text=True, check=True)

    assert json.loads(done.stdout) == {
        "PGOPTIONS": "-c idle_in_transaction_session_timeout=20s",
        "PGSSLMODE": "verify-full",
        "PGSSLROOTCERT": "/ca.crt",
    }
