"""The priority ladder and who may use which rung."""

from django.core.validators import RegexValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from portal.core.models import TimestampedModel
from portal.identity.models import Team
from quotas.policy.limits import MAX_PRIORITY, RESERVED_PREFIX


class PriorityClass(TimestampedModel):
    """A named priority. Higher goes first."""

    name = models.CharField(
        max_length=60,
        unique=True,
        validators=[
            RegexValidator(
                r"^(?!system-)[a-z]([a-z0-9-]*[a-z0-9])?$",
                _("Use lower-case letters, digits and hyphens; the prefix system- is reserved by Kubernetes."),
            )
        ],
    )
    value = models.IntegerField(unique=True)
    description = models.CharField(max_length=200, blank=True)
    # Open: every team may use it. Otherwise only the teams that hold a grant.
    is_open = models.BooleanField(default=False)
    is_default = models.BooleanField(default=False)
    version = models.PositiveIntegerField(default=1)

    class Meta:
        ordering = ["-value"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(value__gte=-MAX_PRIORITY, value__lte=MAX_PRIORITY),
                name="priority_value_in_range",
            ),
            models.CheckConstraint(
                condition=~models.Q(name__startswith=RESERVED_PREFIX), name="priority_name_not_reserved"
            ),
            models.UniqueConstraint(
                fields=["is_default"], condition=models.Q(is_default=True), name="priority_default_once"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class PriorityGrant(models.Model):
    """One team may use one priority class."""

    priority_class = models.ForeignKey(PriorityClass, on_delete=models.CASCADE, related_name="grants")
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="priority_grants")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["priority_class", "team"], name="priority_grant_once")]

    def __str__(self) -> str:
        return f"{self.priority_class_id} for {self.team_id}"
