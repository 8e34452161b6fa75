"""Reading settings from the environment: flags beat files, files beat defaults."""

from collections.abc import Mapping

import environ

# FileAwareEnv reads NAME_FILE where NAME is not set, so that secrets can be mounted.
env = environ.FileAwareEnv()


# Options of Django's backend that are none of libpq's.
_OF_DJANGO = frozenset({"assume_role", "isolation_level", "pool", "server_side_binding"})

_VARIABLES = {
    "options": "PGOPTIONS",
    "sslmode": "PGSSLMODE",
    "sslrootcert": "PGSSLROOTCERT",
    "sslcert": "PGSSLCERT",
    "sslkey": "PGSSLKEY",
}


def libpq_dsn(database: Mapping[str, object]) -> str:
    """Return the libpq connection string of one entry of Django's DATABASES.

    The broker and the live hub open connections of their own, outside Django's, and a socket folder
    in the host part of a URL does not survive every URL parser; a key=value string does.
    """
    names = {"HOST": "host", "PORT": "port", "NAME": "dbname", "USER": "user", "PASSWORD": "password"}
    pairs = {dsn_name: database.get(name) for name, dsn_name in names.items()}
    options = database.get("OPTIONS")
    if isinstance(options, Mapping):
        pairs |= {name: value for name, value in options.items() if name not in _OF_DJANGO}
    return " ".join(f"{name}={_quoted(str(value))}" for name, value in pairs.items() if value)


def libpq_environment(database: Mapping[str, object]) -> dict[str, str]:
    """Return what else one entry of DATABASES asks of its connections, as libpq reads it from the environment.

    For a client that keeps of a connection string no more than host, port, user, password and database.
    """
    options = database.get("OPTIONS")
    given = options if isinstance(options, Mapping) else {}
    return {variable: str(given[name]) for name, variable in _VARIABLES.items() if given.get(name)}


def _quoted(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
