from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('clusters', '0004_faults'),
    ]

    operations = [
        migrations.AddField(
            model_name='cluster',
            name='has_pod_groups',
            field=models.BooleanField(default=False),
        ),
    ]
