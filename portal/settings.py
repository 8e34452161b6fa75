"""Settings of every process, read from the environment (see docs/operator.md for the list)."""

import os
from datetime import timedelta
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from portal.env import env, libpq_dsn, libpq_environment
from portal.logs import logging_config

BASE_DIR = Path(__file__).resolve().parent.parent
VERSION = "0.1.0"

# --- safety -------------------------------------------------------------------------------------
DEMO_SECRET_KEY = "demo-key-not-for-production"  # noqa: S105 -- refused below unless MUSTER_DEMO is set
DEMO = env.bool("MUSTER_DEMO", default=False)
DEBUG = env.bool("DEBUG", default=False)
SECRET_KEY = env.str("SECRET_KEY", default=DEMO_SECRET_KEY if DEMO else "")
# Keys that encrypt cluster tokens at rest, newest first; separate from SECRET_KEY so that each can rotate alone.
ENCRYPTION_KEYS = env.list("MUSTER_ENCRYPTION_KEYS", default=[])
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"] if DEMO else [])
CSRF_TRUSTED_ORIGINS = env.list("MUSTER_TRUSTED_ORIGINS", default=[])
if not DEMO and DEBUG:
    raise ImproperlyConfigured("DEBUG is refused in production: unset DEBUG, or set MUSTER_DEMO=1 for a demo")
if not DEMO and SECRET_KEY in ("", DEMO_SECRET_KEY):
    raise ImproperlyConfigured("SECRET_KEY must be set to a secret value of your own (or set MUSTER_DEMO=1)")
if not DEMO and not ENCRYPTION_KEYS:
    raise ImproperlyConfigured("MUSTER_ENCRYPTION_KEYS must hold at least one Fernet key (or set MUSTER_DEMO=1)")
if DEMO and not ENCRYPTION_KEYS:
    ENCRYPTION_KEYS = ["ZGVtby1rZXktbm90LWZvci1wcm9kdWN0aW9uLTAwMDA="]
HTTPS = env.bool("MUSTER_HTTPS", default=not DEMO)
SECURE_SSL_REDIRECT = HTTPS
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = HTTPS
SECURE_HSTS_PRELOAD = HTTPS
SECURE_PROXY_SSL_HEADER = (
    ("HTTP_X_FORWARDED_PROTO", "https") if env.bool("MUSTER_BEHIND_PROXY", default=False) else None
)
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_AGE = int(timedelta(days=14).total_seconds())
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "style-src": ["'self'"],
        # Plotly positions its elements by style attributes; without this, heat maps come out wrong.
        "style-src-attr": ["'unsafe-inline'"],
        "object-src": ["'none'"],
        "base-uri": ["'self'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
    }
}

# --- Django -------------------------------------------------------------------------------------
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "django_htmx",
    "template_partials",
    "crispy_forms",
    "crispy_bootstrap5",
    "rest_framework",
    "knox",
    "drf_standardized_errors",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "portal.apps.PortalConfig",
    "portal.core",
    "portal.identity",
    "clusters",
    "quotas",
    "jobs",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "portal.identity.middleware.RequestLogMiddleware",
    "portal.identity.middleware.CurrentTeamMiddleware",
    "portal.identity.middleware.TimeZoneMiddleware",
]
ROOT_URLCONF = "portal.urls"
ASGI_APPLICATION = "portal.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "portal.web.context.shell",
            ],
            "builtins": ["template_partials.templatetags.partials", "portal.web.templatetags.muster"],
        },
    }
]
CRISPY_TEMPLATE_PACK = CRISPY_ALLOWED_TEMPLATE_PACKS = "bootstrap5"
AUTH_USER_MODEL = "identity.User"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "identity:sign_in"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "identity:sign_in"
PASSWORD_RESET_TIMEOUT = 3600
EMAIL_BACKEND = env.str("MUSTER_EMAIL_BACKEND", default="django.core.mail.backends.smtp.EmailBackend")
vars().update(env.email_url("EMAIL_URL", default="consolemail://" if DEMO else "smtp://localhost:25"))
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = env.str("MUSTER_MAIL_FROM", default="Muster <muster@localhost>")
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("ar", "العربية")]
LOCALE_PATHS = [BASE_DIR / "portal" / "locale"]
TIME_ZONE = "UTC"
USE_TZ = True
DATA_UPLOAD_MAX_MEMORY_SIZE = 1_048_576
DATA_UPLOAD_MAX_NUMBER_FIELDS = 2_000

STATIC_URL = "/static/"
STATIC_ROOT = BASE_DIR / "staticfiles"
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = DEMO
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if DEMO
        else "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
}

# --- database and broker ------------------------------------------------------------------------
DATABASES = {"default": env.db("DATABASE_URL", default="postgres://muster@localhost/muster")}
DATABASES["default"]["ENGINE"] = "django.db.backends.postgresql"
# The web process asks for a pool; loops and workers keep one connection each. All check it before use.
# A process that was paused in the middle of a transaction shall not hold its locks for long: cycles, and workers that
# start, wait for them.
DATABASES["default"].setdefault("OPTIONS", {}).setdefault("options", "-c idle_in_transaction_session_timeout=20s")
DATABASE_POOL_SIZE = env.int("MUSTER_DATABASE_POOL_SIZE", default=0)
if DATABASE_POOL_SIZE:
    DATABASES["default"]["OPTIONS"]["pool"] = {
        "min_size": 1,
        "max_size": DATABASE_POOL_SIZE,
        "timeout": 10,
    }
else:
    DATABASES["default"]["CONN_MAX_AGE"] = 60
# Nobody sees an error only because the database was started again since the last request.
DATABASES["default"]["CONN_HEALTH_CHECKS"] = True
DATABASE_DSN = libpq_dsn(DATABASES["default"])

BROKER_URL = env.str("BROKER_URL", default="pgmq://localhost")
CELERY_BROKER_URL = BROKER_URL
if BROKER_URL.startswith("pgmq"):
    # The broker's client keeps neither the time limit above nor how the URL wants TLS: libpq finds them here.
    for _name, _value in libpq_environment(DATABASES["default"]).items():
        os.environ.setdefault(_name, _value)
    # conn_string, because the client lets DATABASE_URL of the environment override the broker's own URL.
    CELERY_BROKER_TRANSPORT_OPTIONS = {
        "conn_string": DATABASE_DSN,
        "init_extension": False,
        "use_notify": True,
        "notify_throttle_interval_ms": 0,
        "wait_time_seconds": 0,
        # A NOTIFY wakes the worker at once; polling only heals a lost one.
        "polling_interval": 0.5,
        # What a worker had taken and not begun when it died is delivered again after this long.
        "visibility_timeout": 10,
        "pool_size": 3,
    }
# pgmq queue names are short and a pod's host name is long: remote control would stop the worker at start.
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
# All tasks are loops over rows: the next beat heals one that is lost with its worker. Settled late, the message of a
# worker that ends would stay in the broker beside its successor.
CELERY_TASK_ACKS_LATE = False
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_TASK_IGNORE_RESULT = True
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# A request that hints must not hang on a broker that is away.
CELERY_BROKER_CONNECTION_TIMEOUT = 2
CELERY_TASK_DEFAULT_QUEUE = "default"
CELERY_TIMEZONE = "UTC"

# --- REST ---------------------------------------------------------------------------------------
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "portal.identity.authentication.TokenAuthentication",
        "portal.identity.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_PAGINATION_CLASS": "portal.core.rest.pagination.KeysetPagination",
    "DEFAULT_SCHEMA_CLASS": "portal.core.rest.schema.AutoSchema",
    "DEFAULT_PARSER_CLASSES": ["portal.core.rest.parsers.StrictJSONParser"],
    "EXCEPTION_HANDLER": "portal.core.rest.problem.handler",
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "PAGE_SIZE": 50,
}
REST_KNOX = {
    "AUTH_HEADER_PREFIX": "Bearer",
    "TOKEN_PREFIX": "muster_",
    "TOKEN_MODEL": "identity.ApiToken",
    "TOKEN_TTL": timedelta(days=90),
}
# The library would make a table for its own token model beside ours, with a foreign key to people.
MIGRATION_MODULES = {"knox": None}
KNOX_TOKEN_MODEL = "identity.ApiToken"  # noqa: S105 -- a model's name
SPECTACULAR_SETTINGS = {
    "TITLE": "Muster",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    # No badge: it would send the address of the schema to the library's own site.
    "SWAGGER_UI_SETTINGS": {"deepLinking": True, "validatorUrl": None},
    "REDOC_DIST": "SIDECAR",
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "COMPONENT_SPLIT_REQUEST": True,
}

# --- Muster -------------------------------------------------------------------------------------
# The name that prefixes every label, annotation, gate and taint that we write into a cluster.
MUSTER_DOMAIN = env.str("MUSTER_DOMAIN", default="muster.internal")
MUSTER_INSTALLATION = env.str("MUSTER_INSTALLATION", default="default")
# Plain HTTP to a cluster is for loopback alone, and only when asked for.
MUSTER_ALLOW_PLAIN_HTTP = env.bool("MUSTER_ALLOW_PLAIN_HTTP", default=DEMO)
# Where clusters may be registered, by host; empty: anywhere (only administrators register them).
MUSTER_CLUSTER_HOSTS = env.list("MUSTER_CLUSTER_HOSTS", default=[])
MUSTER_SCRAPE_S = env.float("MUSTER_SCRAPE_S", default=2.0 if DEMO else 15.0)
# A pass of the driver ends after this long; a claim outlives it by a little, and a dead worker's work is taken then.
MUSTER_PASS_S = env.float("MUSTER_PASS_S", default=15.0)
MUSTER_GATHER_S = env.float("MUSTER_GATHER_S", default=60.0)
MUSTER_BIND_S = env.float("MUSTER_BIND_S", default=60.0)
MUSTER_START_S = env.float("MUSTER_START_S", default=900.0)
MUSTER_PULL_GRACE_S = env.float("MUSTER_PULL_GRACE_S", default=120.0)
MUSTER_GIT_IMAGE = env.str("MUSTER_GIT_IMAGE", default="alpine/git:2.47.2")
# Faults of nodes. What a node tells of itself and often mends within seconds (its kubelet or device plug-in starts
# anew) stops no gang before this has passed; one that has fallen silent, left, or reports a fault does at once.
MUSTER_FAULT_GRACE_S = env.float("MUSTER_FAULT_GRACE_S", default=10.0)
# Conditions that mean a fault while they are "True", and taints: patterns with * and ?, in small or big letters.
MUSTER_FAULT_CONDITIONS = env.list(
    "MUSTER_FAULT_CONDITIONS",
    default=["GpuUnhealthy", "*XID*", "Gpu*Watch", "SysLogsGPUFallenOff", "NVSwitchFatalError", "KernelDeadlock"],
)
MUSTER_FAULT_TAINTS = env.list(
    "MUSTER_FAULT_TAINTS", default=["nvidia.com/gpu-xid-error", "nvidia.com/gpu-nvlink-error", "nvidia.com/gpu-error"]
)
# XIDs that an exporter shows (DCGM_FI_DEV_XID_ERRORS). Those of the first list are what a program does wrong, and no
# node is blamed for them, as NVIDIA's device plug-in has it. Of all others the critical ones stop the run that has the
# GPU; the rest are written down, count against the node, and explain a failure that comes of them.
MUSTER_XID_APPLICATION = frozenset(env.list("MUSTER_XID_APPLICATION", cast=int, default=[13, 31, 43, 45, 68, 109]))
MUSTER_XID_CRITICAL = frozenset(env.list("MUSTER_XID_CRITICAL", cast=int, default=[48, 63, 64, 74, 79, 92, 94, 95]))
# A job whose gang a node has failed stays away from that node for this long.
MUSTER_EXCLUDE_S = env.float("MUSTER_EXCLUDE_S", default=6 * 3600.0)
# So many faults within the window put a node into quarantine, but never more than this share of a flavor's nodes: many
# nodes that break at once are more likely one fault of something else. 0 faults: only administrators do it.
MUSTER_QUARANTINE_FAULTS = env.int("MUSTER_QUARANTINE_FAULTS", default=3)
MUSTER_QUARANTINE_WINDOW_S = env.float("MUSTER_QUARANTINE_WINDOW_S", default=86_400.0)
MUSTER_QUARANTINE_SHARE = env.float("MUSTER_QUARANTINE_SHARE", default=0.1)
# What the prices of flavors are in, as people write it.
MUSTER_CURRENCY = env.str("MUSTER_CURRENCY", default="USD")
MUSTER_STALE_AFTER_S = env.float("MUSTER_STALE_AFTER_S", default=15.0)
# Who holds a cluster's GPUs: the floor above the clusters knows, so it is named here.
MUSTER_GPU_HOLDERS = "jobs.selectors.holders.holders_by_node"
# The teams' namespaces, for the page of a team and the command that prints manifests: it takes quotas to know.
MUSTER_SPACES_OF_TEAM = "quotas.selectors.spaces.of_team"
MUSTER_SPACES_MANIFESTS = "quotas.sync.wanted.manifests"
# Namespaces whose pods may call into those of teams (ingress controllers, monitoring), and where runs may go.
MUSTER_SPACE_CALLERS = env.list("MUSTER_SPACE_CALLERS", default=[])
MUSTER_SPACE_EGRESS = env.list("MUSTER_SPACE_EGRESS", default=["0.0.0.0/0", "::/0"])
# And what the maintenance of a node does to the runs on it.
MUSTER_MAINTENANCE_EFFECTS = "jobs.selectors.maintenance.effects_on"

LOGGING = logging_config(
    json=env.bool("MUSTER_LOG_JSON", default=not DEMO), level=env.str("MUSTER_LOG_LEVEL", default="INFO")
)
