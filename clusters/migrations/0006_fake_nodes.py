from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('clusters', '0005_pod_groups'),
    ]

    operations = [
        migrations.AddField(
            model_name='cluster',
            name='has_fake_nodes',
            field=models.BooleanField(default=False),
        ),
    ]
