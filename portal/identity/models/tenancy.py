"""Tenants: organizations, teams and who belongs to them."""

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models
from django.db.models.functions import Lower
from django.utils.translation import gettext_lazy as _

from portal.core.models import TimestampedModel

dns_label = RegexValidator(
    r"^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$",
    _("Use 1 to 40 lower-case letters, digits and hyphens, starting with a letter."),
)


class Organization(TimestampedModel):
    """The tenant that owns teams and cohorts."""

    name = models.CharField(max_length=100, unique=True)
    slug = models.CharField(max_length=40, unique=True, validators=[dns_label])

    def __str__(self) -> str:
        return self.name


class Team(TimestampedModel):
    """A group of people that submits jobs; it has one namespace of the same name on every cluster."""

    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="teams")
    name = models.CharField(max_length=100)
    slug = models.CharField(max_length=40, unique=True, validators=[dns_label])
    namespace = models.CharField(max_length=63, unique=True)
    members = models.ManyToManyField(settings.AUTH_USER_MODEL, through="Membership", related_name="teams")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["organization", "name"], name="team_name_once_per_organization")]

    def __str__(self) -> str:
        return self.name


class Membership(TimestampedModel):
    """A person in a team, in one role."""

    class Role(models.TextChoices):
        OWNER = "owner", _("Owner")
        MEMBER = "member", _("Member")
        VIEWER = "viewer", _("Viewer")

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=6, choices=Role, default=Role.MEMBER)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "team"], name="membership_once")]

    def __str__(self) -> str:
        return f"{self.user_id} {self.role} of {self.team_id}"


class Invitation(TimestampedModel):
    """A link that lets one address join a team, once, until it expires. Only a digest of it is kept."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="invitations")
    email = models.EmailField()
    role = models.CharField(max_length=6, choices=Membership.Role, default=Membership.Role.MEMBER)
    digest = models.CharField(max_length=64, unique=True)
    expires_at = models.DateTimeField()
    invited_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    accepted_at = models.DateTimeField(null=True)
    accepted_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                "team",
                Lower("email"),
                condition=models.Q(accepted_at=None, revoked_at=None),
                name="invitation_once_open",
            )
        ]

    def __str__(self) -> str:
        return f"{self.email} to {self.team_id}"


class TeamSecret(TimestampedModel):
    """The name and keys of a Kubernetes secret that a team may refer to. Muster never reads its values."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="secrets")
    name = models.CharField(max_length=253)
    keys = models.JSONField(default=list)
    is_pull_secret = models.BooleanField(default=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["team", "name"], name="team_secret_once")]

    def __str__(self) -> str:
        return self.name
