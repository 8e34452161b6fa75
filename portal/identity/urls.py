"""Addresses of people, teams and tokens."""

from django.urls import path

from portal.identity.views import password, session

app_name = "identity"
urlpatterns = [
    path("sign-in/", session.sign_in, name="sign_in"),
    path("sign-out/", session.sign_out, name="sign_out"),
    path("people/team/", session.switch_team, name="switch_team"),
    path("password/", password.change, name="password"),
    path("password/reset/", password.reset, name="password_reset"),
    path("password/reset/sent/", password.reset_sent, name="password_reset_sent"),
    path("password/reset/<uidb64>/<token>/", password.reset_confirm, name="password_reset_confirm"),
]
