"""Installs the message queue's SQL for the embedded broker, where it is used and not there yet."""

from django.conf import settings
from django.db import migrations
from pgmq.install import get_embedded_install_sql


def install(apps, schema_editor):
    if not settings.BROKER_URL.startswith("pgmq"):
        return
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_namespace WHERE nspname = 'pgmq'")
        # The script can be run once only.
        if cursor.fetchone() is None:
            cursor.execute(get_embedded_install_sql())


class Migration(migrations.Migration):
    dependencies = [("core", "0001_initial")]
    operations = [migrations.RunPython(install, migrations.RunPython.noop, elidable=False)]
