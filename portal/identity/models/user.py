"""People."""

from django.contrib.auth.models import AbstractUser
from django.db import models
from django.db.models.functions import Lower
from django.utils.translation import gettext_lazy as _


class User(AbstractUser):  # type: ignore[django-manager-missing]  # of the tokens: the library ships no types
    """A person who signs in. `is_superuser` makes a platform administrator; `is_staff` is not used."""

    class Theme(models.TextChoices):
        AUTO = "auto", _("Follow the system")
        LIGHT = "light", _("Light")
        DARK = "dark", _("Dark")

    email = models.EmailField(_("email address"), unique=True)
    theme = models.CharField(max_length=5, choices=Theme, default=Theme.AUTO)
    time_zone = models.CharField(max_length=64, default="UTC")

    class Meta(AbstractUser.Meta):
        """Alice beside alice would be mistaken for each other."""

        constraints = (
            models.UniqueConstraint(Lower("username"), name="username_in_any_case"),
            models.UniqueConstraint(Lower("email"), name="email_in_any_case"),
        )

    @property
    def is_platform_admin(self) -> bool:
        """Whether this person administers the whole platform."""
        return self.is_active and self.is_superuser
