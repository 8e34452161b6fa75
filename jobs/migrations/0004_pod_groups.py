from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0003_faults'),
    ]

    operations = [
        migrations.AddField(
            model_name='attempt',
            name='is_grouped',
            field=models.BooleanField(default=False),
        ),
    ]
