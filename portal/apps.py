"""The roof: what needs several floors."""

from django.apps import AppConfig

from portal.celery import app as celery_app


class PortalConfig(AppConfig):
    """Loads the Celery app, so that every process sends tasks to the same broker."""

    name = "portal"
    celery = celery_app
