"""Define classes of interchangeable nodes."""

from collections.abc import Mapping

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import ProtectedError
from django.utils.translation import gettext as _

from clusters.models import ResourceFlavor
from clusters.services.labels import is_label_key, is_label_value
from portal.core.audit import Actor, Target, record
from portal.core.errors import DomainError, InvalidInputError

FIELDS = ("name", "title", "resource_name", "label_key", "label_value", "memory_mib", "link", "rank", "price_cents")


@transaction.atomic
def create_flavor(*, actor: Actor, values: Mapping[str, object]) -> ResourceFlavor:
    """Define a flavor. Nodes that match are counted within seconds. Raise InvalidInputError."""
    flavor = ResourceFlavor(**_known(values))
    _clean(flavor)
    flavor.save()
    record(actor, "flavor.created", _target(flavor), after=_shown(flavor))
    return flavor


@transaction.atomic
def update_flavor(*, actor: Actor, flavor: ResourceFlavor, values: Mapping[str, object]) -> ResourceFlavor:
    """Change a flavor. Raise InvalidInputError."""
    current = ResourceFlavor.objects.select_for_update(no_key=True).get(pk=flavor.pk)
    before = _shown(current)
    for name, value in _known(values).items():
        setattr(current, name, value)
    _clean(current)
    current.save()
    changed = {key: value for key, value in _shown(current).items() if before[key] != value}
    record(
        actor,
        "flavor.updated",
        _target(current),
        before={key: before[key] for key in changed},
        after=changed,
    )
    return current


@transaction.atomic
def delete_flavor(*, actor: Actor, flavor: ResourceFlavor) -> None:
    """Remove a flavor that no node has and no quota names. Raise DomainError otherwise."""
    target, before = _target(flavor), _shown(flavor)
    try:
        flavor.delete()
    except ProtectedError as error:
        count = len(error.protected_objects)
        raise DomainError(
            _("%(name)s is in use by %(count)d nodes, quotas or jobs.") % {"name": flavor.name, "count": count},
            code="flavor_in_use",
            numbers={"count": count},
        ) from None
    record(actor, "flavor.deleted", target, before=before)


def _known(values: Mapping[str, object]) -> dict[str, object]:
    unknown = sorted(values.keys() - set(FIELDS))
    if unknown:
        raise InvalidInputError({name: [_("There is no such field.")] for name in unknown})
    return dict(values)


def _clean(flavor: ResourceFlavor) -> None:
    problems: dict[str, list[str]] = {}
    try:
        flavor.full_clean()
    except ValidationError as error:
        problems = error.message_dict
    for name in ("resource_name", "label_key"):
        if not is_label_key(getattr(flavor, name)):
            problems.setdefault(name, []).append(_("Use a name such as vendor.example/gpu."))
    if not is_label_value(flavor.label_value):
        problems.setdefault("label_value", []).append(_("Use up to 63 letters, digits, dots, hyphens and underscores."))
    if problems:
        raise InvalidInputError(problems)


def _shown(flavor: ResourceFlavor) -> dict[str, object]:
    return {name: getattr(flavor, name) for name in FIELDS}


def _target(flavor: ResourceFlavor) -> Target:
    return Target(type="flavor", id=str(flavor.pk), label=flavor.name)
