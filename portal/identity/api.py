"""Teams and tokens over REST."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from portal.core.rest.request import ApiRequest
from portal.identity.actors import actor_of
from portal.identity.models import ApiToken, Membership, Team
from portal.identity.selectors import members_of, tokens_of, visible_teams
from portal.identity.services import tokens
from portal.identity.services.tokens import MAX_DAYS, MAX_NAME


class TeamOut(serializers.ModelSerializer[Team]):
    """A team, and the asking person's role in it (null for an administrator who is no member)."""

    organization = serializers.SlugRelatedField[Any](slug_field="slug", read_only=True)
    role = serializers.SerializerMethodField()

    class Meta:
        model = Team
        fields = ["slug", "name", "organization", "namespace", "role", "created_at"]
        read_only_fields = fields

    def get_role(self, team: Team) -> str | None:
        """Return the person's role."""
        roles: dict[int, str] = self.context["request"].roles
        return roles.get(team.pk)


class MemberOut(serializers.ModelSerializer[Membership]):
    """A person in a team."""

    username = serializers.CharField(source="user.username")

    class Meta:
        model = Membership
        fields = ["username", "role", "created_at"]
        read_only_fields = fields


class TokenIn(serializers.Serializer[ApiToken]):
    """What a new token is called, and for how many days it works."""

    name = serializers.CharField(max_length=MAX_NAME)
    days = serializers.IntegerField(min_value=1, max_value=MAX_DAYS, default=90)


class TokenOut(serializers.ModelSerializer[ApiToken]):
    """A token without its secret; `id` is its visible start."""

    id = serializers.CharField(source="token_key")
    created_at = serializers.DateTimeField(source="created")
    expires_at = serializers.DateTimeField(source="expiry", allow_null=True)

    class Meta:
        model = ApiToken
        fields = ["id", "name", "created_at", "expires_at", "last_used_at", "revoked_at"]
        read_only_fields = fields


class NewTokenOut(TokenOut):
    """A new token with its secret, which is shown in this answer alone."""

    token = serializers.SerializerMethodField()

    class Meta(TokenOut.Meta):
        fields = [*TokenOut.Meta.fields, "token"]
        read_only_fields = fields

    def get_token(self, _token: ApiToken) -> str:
        """Return the secret."""
        return str(self.context["secret"])


class TeamViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Team]):
    """The teams that the person may see."""

    request: ApiRequest
    queryset = Team.objects.all()
    serializer_class = TeamOut
    lookup_field = "slug"
    lookup_value_regex = "[a-z0-9-]{1,60}"
    keyset_order: tuple[str, ...] = ("name", "id")

    def get_queryset(self) -> QuerySet[Team]:
        """Return the visible teams alone, so that a foreign one is missing."""
        return visible_teams(self.request.user)

    @extend_schema(responses=MemberOut(many=True))
    @action(detail=True)
    def members(self, _request: ApiRequest, slug: str) -> Response:
        """List who is in the team, in which role."""
        self.keyset_order = ("id",)
        members: Any = members_of(self.get_object())
        page: Any = self.paginate_queryset(members)
        return self.get_paginated_response(MemberOut(page, many=True).data)


class TokenViewSet(mixins.ListModelMixin, viewsets.GenericViewSet[ApiToken]):
    """The person's own tokens."""

    request: ApiRequest
    queryset = ApiToken.objects.all()
    serializer_class = TokenOut
    lookup_field = "token_key"
    lookup_value_regex = "[A-Za-z0-9_]{1,60}"
    keyset_order = ("-created", "token_key")

    def get_queryset(self) -> QuerySet[ApiToken]:
        """Return the person's own tokens alone."""
        return tokens_of(self.request.user)

    @extend_schema(request=TokenIn, responses={201: NewTokenOut})
    def create(self, request: ApiRequest) -> Response:
        """Make a token; its secret is in this answer and nowhere else."""
        asked: BaseSerializer[ApiToken] = TokenIn(data=request.data)
        asked.is_valid(raise_exception=True)
        token, secret = tokens.create_token(actor=actor_of(request), user=request.user, **asked.validated_data)
        answer = NewTokenOut(token, context={"secret": secret})
        return Response(answer.data, status=status.HTTP_201_CREATED, headers={"Cache-Control": "no-store"})

    def destroy(self, request: ApiRequest, token_key: str) -> Response:
        """Revoke a token. Its row is kept for the log."""
        tokens.revoke_token(actor=actor_of(request), token=self.get_object())
        return Response(status=status.HTTP_204_NO_CONTENT)


router_entries: list[tuple[str, type[viewsets.GenericViewSet[Any]], str]] = [
    ("teams", TeamViewSet, "teams"),
    ("tokens", TokenViewSet, "tokens"),
]
