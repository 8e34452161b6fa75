"""One word, one hue and one glyph for each state, attribute and GPU cell. Colour never stands alone."""

from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


@dataclass(frozen=True)
class Look:
    """How a state or an attribute is shown. `hue` is one of the five of the stylesheet."""

    word: str | Promise
    hue: str
    glyph: str = ""


STATES = {
    "queued": Look(_("Queued"), "neutral", "ring"),
    "admitted": Look(_("Admitted"), "active", "ring-dot"),
    "starting": Look(_("Starting"), "active", "half"),
    "running": Look(_("Running"), "active", "disc"),
    # Of schedules, which make runs and are none
    "scheduled": Look(_("Scheduled"), "neutral", "ring-dot"),
    "paused": Look(_("Paused"), "neutral", "ring"),
    "stopping": Look(_("Stopping"), "warn", "triangle"),
    "preempting": Look(_("Preempting"), "warn", "triangle"),
    "succeeded": Look(_("Succeeded"), "good", "check"),
    "failed": Look(_("Failed"), "bad", "octagon-x"),
    "cancelled": Look(_("Cancelled"), "neutral", "ring-slash"),
    # Of clusters, nodes and the steps of a checklist
    "healthy": Look(_("Healthy"), "good", "check"),
    "ready": Look(_("Ready"), "good", "check"),
    "not_ready": Look(_("Not ready"), "bad", "octagon-x"),
    "cordoned": Look(_("Cordoned"), "warn", "triangle"),
    "faulty": Look(_("Faulty"), "bad", "octagon-x"),
    "quarantined": Look(_("Quarantined"), "warn", "triangle"),
    "maintenance": Look(_("In maintenance"), "warn", "triangle"),
    "warning": Look(_("Warning"), "warn", "triangle"),
    "problem": Look(_("Problem"), "bad", "octagon-x"),
    "ok": Look(_("Fine"), "good", "check"),
    "stale": Look(_("Stale"), "neutral", "question"),
    # Of the spaces of teams and their objects
    "in_step": Look(_("In step"), "good", "check"),
    "drifted": Look(_("Drifted"), "warn", "triangle"),
    "altered": Look(_("Changed there"), "warn", "triangle"),
    "outdated": Look(_("Changed here"), "warn", "half"),
    "missing": Look(_("Missing"), "bad", "octagon-x"),
}
UNKNOWN = Look(_("Unknown"), "neutral", "question")
FINAL_STATES = frozenset({"succeeded", "failed", "cancelled"})

PILLS = {
    "schedule": Look(_("schedule"), "neutral"),
    "simulated": Look(_("simulated"), "neutral"),
    "fake_nodes": Look(_("real API, fake nodes"), "neutral"),
    "synthetic": Look(_("synthetic"), "neutral"),
    "borrowed": Look(_("borrowed"), "warn"),
    "reclaimable": Look(_("reclaimable"), "warn"),
    "locked": Look(_("locked"), "neutral", "lock"),
    "protected": Look(_("protected"), "neutral", "lock"),
    "preemptible": Look(_("preemptible"), "neutral"),
    "loan": Look(_("loan"), "active"),
    "drift": Look(_("drift"), "warn", "triangle"),
    "throttled": Look(_("throttled"), "warn", "triangle"),
    "unhealthy": Look(_("unhealthy"), "bad", "octagon-x"),
    "stale": Look(_("stale"), "neutral", "question"),
    "disabled": Look(_("disabled"), "neutral"),
    "expired": Look(_("expired"), "neutral"),
    "revoked": Look(_("revoked"), "neutral"),
    "owner": Look(_("owner"), "neutral"),
    "member": Look(_("member"), "neutral"),
    "viewer": Look(_("viewer"), "neutral"),
    "administrator": Look(_("administrator"), "active"),
}

CELLS = {
    "free": _("free"),
    "busy": _("busy"),
    "idle": _("held but idle"),
    "fault": _("fault"),
    "cordoned": _("cordoned"),
    "foreign": _("used outside Muster"),
    "unknown": _("no data"),
}
