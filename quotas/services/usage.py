"""Reserve and release GPUs against the quota tree.

Each queue and each cohort above it has one counter per flavor. A reservation adds to all of them or to none:
the counters are locked first, always from the root down, then one guarded UPDATE reads the nominal amounts in
the same statement. Locking in an earlier statement matters: an UPDATE that had to wait for a row checks its
condition against the quota as it was before the wait, so a quota lowered meanwhile would be missed.

Call inside a transaction at READ COMMITTED. A caller that reserves or releases several times in one transaction
goes by flavor id, else two such callers can lock each other out.
"""

from django.db import transaction
from django.db.models import Case, F, IntegerField, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.functions import Coalesce
from django.utils.translation import gettext as _

from portal.core.errors import DomainError
from quotas.models import Quota, QuotaUsage
from quotas.policy.limits import MAX_GPUS
from quotas.selectors.usage import cohorts_above

# The cap of a cohort without a quota: more than its counter can reach, yet far from the end of its column.
_NO_CAP = 1_000 * MAX_GPUS


class QuotaExceededError(DomainError):
    """A queue or a cohort above it has no room. `numbers`: owner, used, nominal, asked, flavor."""

    code = "quota_exceeded"


class UsageBelowZeroError(RuntimeError):
    """More was released than is reserved: something was released twice, or a counter drifted (see `drift`)."""


def reserve(queue_id: int, flavor_id: int, gpus: int) -> None:
    """Add whole GPUs (> 0) to the counters of a queue and of all cohorts above it.

    Raises QuotaExceededError, with nothing changed, if one of them would go above its nominal amount.
    """
    counters = _lock_counters(queue_id, flavor_id, gpus)
    with_room = _with_cap(counters).filter(_room_for(gpus))
    if not _add_to_all(with_room, gpus, expected=len(counters)):
        raise _exceeded(counters, gpus)


def release(queue_id: int, flavor_id: int, gpus: int) -> None:
    """Take whole GPUs (> 0) off the counters again.

    Exactly once per reservation: a counter cannot tell who gives back, so the caller must win a compare-and-set
    of its own in the same transaction (set `released_at` where it is null, look at the row count) and release
    only what those rows held. Raises UsageBelowZeroError, with nothing changed, if a counter holds less.
    """
    counters = _lock_counters(queue_id, flavor_id, gpus)
    holding = QuotaUsage.objects.filter(pk__in=counters, used__gte=gpus)
    if not _add_to_all(holding, -gpus, expected=len(counters)):
        raise UsageBelowZeroError(f"queue {queue_id}, flavor {flavor_id}: {gpus} GPUs are not reserved")


def _add_to_all(rows: QuerySet[QuotaUsage], gpus: int, *, expected: int) -> bool:
    """Add to the rows if as many as expected match their condition, else to none; the locks stay."""
    with transaction.atomic():
        moved = rows.update(used=F("used") + gpus)
        transaction.set_rollback(moved != expected)
    return moved == expected


def _lock_counters(queue_id: int, flavor_id: int, gpus: int) -> list[int]:
    """Lock the counters from the root down to the queue, made where missing; return their ids."""
    if gpus <= 0:
        raise ValueError(f"{gpus} GPUs cannot be reserved or released")
    cohort_ids = cohorts_above(queue_id)
    if not cohort_ids:
        raise DomainError(_("This queue does not exist any more."), code="unknown_queue", field="queue")
    # A cohort is older than what lies below it and never moves, so ascending ids go down the tree; the queue's
    # own row has no cohort and comes last.
    locking = (
        QuotaUsage.objects.filter(Q(queue_id=queue_id) | Q(cohort_id__in=cohort_ids), flavor_id=flavor_id)
        .order_by("cohort_id")
        .select_for_update(no_key=True)
        .values_list("pk", flat=True)
    )
    counters = list(locking)
    if len(counters) > len(cohort_ids):
        return counters
    # Whoever makes a counter holds the root's: else one waits for the other's new row and is waited for at the root.
    _make([QuotaUsage(cohort_id=cohort_ids[-1], flavor_id=flavor_id)])
    list(locking.all())
    below = [QuotaUsage(cohort_id=cohort_id, flavor_id=flavor_id) for cohort_id in cohort_ids[:-1]]
    _make([*below, QuotaUsage(queue_id=queue_id, flavor_id=flavor_id)])
    return list(locking.all())


def _make(counters: list[QuotaUsage]) -> None:
    """Make those that are not there yet; waits for a rival that makes the same, then leaves its row alone."""
    QuotaUsage.objects.bulk_create(counters, ignore_conflicts=True)


def _with_cap(counters: list[int]) -> QuerySet[QuotaUsage]:
    """Add `cap`, whole GPUs: the nominal amount; without one a queue has none and a cohort has no cap."""
    owned = Q(queue_id=OuterRef("queue_id")) | Q(cohort_id=OuterRef("cohort_id"))
    nominal = Quota.objects.filter(owned, flavor_id=OuterRef("flavor_id")).values("nominal")
    otherwise = Case(When(queue_id__isnull=False, then=Value(0)), default=Value(_NO_CAP))
    cap = Coalesce(Subquery(nominal), otherwise, output_field=IntegerField())
    return QuotaUsage.objects.filter(pk__in=counters).annotate(cap=cap)


def _room_for(gpus: int) -> Q:
    """The guard: a counter takes `gpus` more only while it stays within its cap."""
    return Q(used__lte=F("cap") - gpus)


def _exceeded(counters: list[int], gpus: int) -> QuotaExceededError:
    """Name the lowest owner without room: the one that the asking team knows best."""
    full = _with_cap(counters).exclude(_room_for(gpus)).annotate(nominal=F("cap"))
    # Postgres sorts "no cohort", which is the queue, before all.
    lowest = full.order_by("-cohort_id").values("queue__name", "cohort__name", "flavor__name", "used", "nominal")[0]
    numbers = {
        "owner": lowest["queue__name"] or lowest["cohort__name"],
        "used": lowest["used"],
        "nominal": lowest["nominal"],
        "asked": gpus,
        "flavor": lowest["flavor__name"],
    }
    message = _("%(owner)s holds %(used)d of %(nominal)d %(flavor)s GPUs; %(asked)d more do not fit.")
    return QuotaExceededError(message % numbers, field="queue", numbers=numbers)
