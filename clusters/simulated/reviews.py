"""Questions that a client asks about itself: who am I, and may I do this."""

from collections.abc import Callable
from typing import Any

from clusters.simulated.errors import bad_request
from clusters.simulated.failures import Act, Failures
from clusters.simulated.identity import User
from clusters.simulated.resources import Obj

Ask = Callable[[Failures, User, Any], Obj]


def review(path: str) -> Ask | None:
    """What answers a POST to this path; None for any other path."""
    return _REVIEWS.get(path)


def _access(failures: Failures, _user: User, body: Any) -> Obj:
    spec = (body.get("spec") if isinstance(body, dict) else None) or {}
    wish = spec.get("resourceAttributes")
    if wish is None and not spec.get("nonResourceAttributes"):
        raise bad_request("exactly one of nonResourceAttributes or resourceAttributes must be specified")
    allowed = wish is None or not failures.denies(_act(wish))
    answer: Obj = {"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1"}
    return {**answer, "metadata": {}, "spec": spec, "status": {"allowed": allowed}}


def _myself(_failures: Failures, user: User, _body: Any) -> Obj:
    answer: Obj = {"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1", "metadata": {}}
    return {**answer, "status": {"userInfo": {"username": user.name, "groups": list(user.groups)}}}


def _act(wish: Obj) -> Act:
    resource, sub = str(wish.get("resource") or ""), str(wish.get("subresource") or "")
    return Act(
        str(wish.get("verb") or ""),
        str(wish.get("group") or ""),
        f"{resource}/{sub}" if sub else resource,
        str(wish.get("namespace") or ""),
    )


_REVIEWS: dict[str, Ask] = {
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews": _access,
    "/apis/authentication.k8s.io/v1/selfsubjectreviews": _myself,
}
