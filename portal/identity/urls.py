"""Addresses of people, teams and tokens."""

from django.urls import path

from portal.identity.views import audit, invitation, password, people, profile, session, teams, tokens

app_name = "identity"
urlpatterns = [
    path("sign-in/", session.sign_in, name="sign_in"),
    path("sign-out/", session.sign_out, name="sign_out"),
    path("audit/", audit.audit, name="audit"),
    path("people/", people.people, name="people"),
    path("people/<int:user_id>/active/", people.set_active, name="set_active"),
    path("people/<int:user_id>/administrator/", people.set_administrator, name="set_administrator"),
    path("people/password/", password.change, name="password"),
    path("people/password/reset/", password.reset, name="password_reset"),
    path("people/password/reset/sent/", password.reset_sent, name="password_reset_sent"),
    path("people/password/reset/<uidb64>/<token>/", password.reset_confirm, name="password_reset_confirm"),
    path("people/profile/", profile.profile, name="profile"),
    path("people/theme/", profile.theme, name="theme"),
    path("people/team/", session.switch_team, name="switch_team"),
    path("people/tokens/", tokens.tokens, name="tokens"),
    path("people/tokens/<slug:token_key>/revoke/", tokens.revoke, name="revoke_token"),
    path("people/invitations/", invitation.answer, name="answer_invitation"),
    path("people/invitations/<str:secret>/", invitation.arrive, name="invitation"),
    path("people/organizations/new/", teams.new_organization, name="new_organization"),
    path("people/teams/", teams.teams, name="teams"),
    path("people/teams/new/", teams.new_team, name="new_team"),
    path("people/teams/<slug:slug>/", teams.team, name="team"),
    path("people/teams/<slug:slug>/invite/", teams.invite, name="invite"),
    path(
        "people/teams/<slug:slug>/invitations/<int:invitation_id>/revoke/",
        teams.revoke_invitation,
        name="revoke_invitation",
    ),
    path("people/teams/<slug:slug>/members/<int:user_id>/role/", teams.change_role, name="change_role"),
    path("people/teams/<slug:slug>/members/<int:user_id>/remove/", teams.remove_member, name="remove_member"),
]
