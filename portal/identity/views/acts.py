"""The answer to a button: a sentence and the page that it was on."""

from collections.abc import Callable

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from portal.core.errors import DomainError


def act(request: HttpRequest, action: Callable[[], None], *, done: str, back: str) -> HttpResponse:
    """Do it, say that it is done or why not, and go back."""
    try:
        action()
    except DomainError as refusal:
        messages.error(request, refusal.message)
    else:
        messages.success(request, done)
    return redirect(back)
