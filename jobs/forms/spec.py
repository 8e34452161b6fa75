"""The form of a run: inputs only. What they may hold is decided where every document is checked."""

import json
from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from jobs.forms import layout
from jobs.forms.layout import Document
from jobs.forms.rows import Column, RowsField
from jobs.jobspec.parts import PAGE_SIZES
from jobs.selectors.choices import Choices, Options

AUTOMATIC: tuple[str, Any] = ("", gettext_lazy("automatic"))


NEEDED = frozenset({"name", "image", "workers", "gpus_per_worker", "replicas"})


class SpecForm(forms.Form):
    """All inputs of a document. `base` carries the whole document along, for what the inputs do not show."""

    name = forms.CharField(label=gettext_lazy("Name"))
    image = forms.CharField(label=gettext_lazy("Image"))
    code_url = forms.CharField(label=gettext_lazy("Code, git address"))
    code_ref = forms.CharField(label=gettext_lazy("Branch, tag or commit"))
    code_path = forms.CharField(label=gettext_lazy("Folder in the repository"))
    code_secret = forms.CharField(label=gettext_lazy("Secret for the repository"))
    command = RowsField([Column("value", gettext_lazy("word"), "area")], label=gettext_lazy("Command"))
    args = RowsField([Column("value", gettext_lazy("argument"), "area")], label=gettext_lazy("Arguments"))
    workers = forms.CharField(label=gettext_lazy("Workers"))
    replicas = forms.CharField(label=gettext_lazy("Replicas"))
    gpus_per_worker = forms.CharField(label=gettext_lazy("GPUs each"))
    priority = forms.ChoiceField(label=gettext_lazy("Priority"))
    cpu_request = forms.CharField(label=gettext_lazy("CPU requested"))
    cpu_limit = forms.CharField(label=gettext_lazy("CPU limit"))
    memory_request = forms.CharField(label=gettext_lazy("Memory requested"))
    memory_limit = forms.CharField(label=gettext_lazy("Memory limit"))
    shared_memory = forms.CharField(label=gettext_lazy("Shared memory"))
    workload = forms.ChoiceField(label=gettext_lazy("On the cluster"))
    qos = forms.ChoiceField(label=gettext_lazy("CPU and memory"))
    huge_pages_amount = forms.CharField(label=gettext_lazy("Huge pages, together"))
    huge_pages_size = forms.ChoiceField(label=gettext_lazy("in pages of"))
    runtime_class = forms.CharField(
        label=gettext_lazy("Runtime class"), help_text=gettext_lazy("Such as nvidia or kata; the cluster must have it.")
    )
    env = RowsField(
        [Column("name", gettext_lazy("name")), Column("value", gettext_lazy("value"), "area")],
        label=gettext_lazy("Variables"),
    )
    image_pull_secret = forms.CharField(label=gettext_lazy("Secret for the image"))
    topology_mode = forms.ChoiceField(label=gettext_lazy("Keep workers together"))
    topology_level = forms.ChoiceField(label=gettext_lazy("Level"))
    spread_policy = forms.ChoiceField(label=gettext_lazy("Spread"))
    min_workers = forms.CharField(label=gettext_lazy("Start with at least"))
    max_runtime = forms.CharField(
        label=gettext_lazy("Time limit"), help_text=gettext_lazy("Such as 12h or 1d 6h, counted from Running.")
    )
    backoff_limit = forms.CharField(label=gettext_lazy("Retries"))
    ttl = forms.CharField(
        label=gettext_lazy("Keep the pods after the end"), help_text=gettext_lazy("Such as 24h, or “never” to keep.")
    )
    checkpoint_path = forms.CharField(label=gettext_lazy("Checkpoint folder"))
    checkpoint_interval = forms.CharField(label=gettext_lazy("About every"))
    cron = forms.CharField(
        label=gettext_lazy("Comes due (cron)"),
        help_text=gettext_lazy("Minute, hour, day of the month, month, day of the week; or @daily and the like."),
    )
    time_zone = forms.CharField(label=gettext_lazy("Time zone"))
    concurrency = forms.ChoiceField(label=gettext_lazy("When the run before is not over"))
    starting_deadline = forms.CharField(
        label=gettext_lazy("Left out when later than"), help_text=gettext_lazy("Such as 10m; empty: made late.")
    )
    keep_succeeded = forms.CharField(label=gettext_lazy("Jobs kept that succeeded"))
    keep_failed = forms.CharField(label=gettext_lazy("Jobs kept that failed"))
    port = forms.CharField(label=gettext_lazy("Port of the container"))
    service_port = forms.CharField(
        label=gettext_lazy("Port of the address"), help_text=gettext_lazy("“none” for no address in the cluster.")
    )
    readiness_path = forms.CharField(label=gettext_lazy("Ready when this path answers"))
    readiness_delay = forms.CharField(label=gettext_lazy("first after"))
    readiness_period = forms.CharField(label=gettext_lazy("then every"))
    liveness_path = forms.CharField(label=gettext_lazy("Restart when this path fails"))
    liveness_delay = forms.CharField(label=gettext_lazy("first after"))
    liveness_period = forms.CharField(label=gettext_lazy("then every"))
    labels = RowsField(
        [Column("name", gettext_lazy("name")), Column("value", gettext_lazy("value"))], label=gettext_lazy("Labels")
    )
    description = forms.CharField(label=gettext_lazy("Description"), widget=forms.Textarea(attrs={"rows": 3}))
    queue = forms.ChoiceField(label=gettext_lazy("Queue"))

    def __init__(
        self, data: Mapping[str, Any] | None = None, *, choices: Choices, document: Document | None = None
    ) -> None:
        self.base: Document = _base(data) if data is not None else document or {}
        self.kind = str(self.base.get("kind") or layout.TRAINING)
        super().__init__(data, initial=layout.inputs_of(self.base, self.kind) if data is None else None)
        self._offer(choices)
        for name in layout.foreign_to(self.kind):
            del self.fields[name]
        for name, field in self.fields.items():
            field.required = False
            # A form's own rules would take a wrong value away, and what is not there counts as empty.
            field.validators = []
            # The browser refuses nothing, since nothing typed may be lost; the label still says what is needed.
            field.is_needed = name in NEEDED  # type: ignore[attr-defined]
            _dress(name, field)

    @property
    def base_text(self) -> str:
        """The document as the hidden input carries it."""
        return json.dumps(self.base)

    @property
    def document(self) -> Document:
        """The document with what stands in the inputs, typed or shown."""
        if not self.is_bound:
            return self.base
        self.is_valid()  # there are no rules here that could fail: it only reads the inputs
        return layout.document_of(self.cleaned_data, self.base, self.kind)

    @property
    def opened(self) -> dict[str, bool]:
        """Which groups must stand open, since one of their inputs needs another look."""
        return {group: any(name in self.errors for name in names) for group, names in _GROUPS.items()}

    def _offer(self, choices: Choices) -> None:
        default = _("default (%(name)s)") % {"name": choices.default_priority or "-"}
        self._choose("priority", (("", default), *choices.priorities))
        self._choose("queue", (("", _("the team's default")), *choices.queues))
        self._choose("topology_level", (AUTOMATIC, *choices.levels, *_NODE))
        self._choose("topology_mode", (AUTOMATIC, *_MODES))
        self._choose("workload", (AUTOMATIC, *_WORKLOADS))
        self._choose("concurrency", (AUTOMATIC, *_CONCURRENCIES))
        self._choose("qos", (("", _("as requested and limited")), *_QOS))
        self._choose("huge_pages_size", (AUTOMATIC, *((size, size) for size in PAGE_SIZES)))
        self._choose("spread_policy", (AUTOMATIC, *_SPREADS))
        self.fields["accelerators"] = RowsField(
            [Column("value", _("type"), "select", options=choices.flavors)],
            label=_("GPU types, the best first"),
            help_text=_("Empty: any type with quota. In brackets: free now."),
        )
        self.fields["clusters"] = RowsField(
            [Column("value", _("cluster"), "select", options=choices.clusters)],
            label=_("Only on these clusters"),
        )
        self.fields["volumes"] = RowsField(
            [
                Column("claim", _("claim"), options=choices.claims),
                Column("mount_path", _("mounted at"), placeholder="/data"),
                Column("read_only", _("read only"), "check"),
            ],
            label=_("Volumes"),
        )
        self.fields["secrets"] = RowsField(
            [
                Column("name", _("secret"), options=choices.secrets),
                Column("key", _("key"), options=choices.secret_keys),
                Column("env", _("as variable"), placeholder="TOKEN"),
                Column("mount_path", _("or as file at"), placeholder="/secrets/token"),
            ],
            label=_("Secrets"),
        )

    def _choose(self, name: str, options: Options) -> None:
        """Offer the options and what stands there already: a choice that is gone is refused later, with its reason."""
        field = self.fields[name]
        current = str(self.data.get(name, "") if self.is_bound else self.initial.get(name, ""))
        known = options if current in dict(options) else (*options, (current, current))
        self.fields[name] = forms.ChoiceField(label=field.label, choices=known)


_GROUPS: Mapping[str, tuple[str, ...]] = {
    "volumes": ("volumes",),
    "size": ("cpu_request", "cpu_limit", "memory_request", "memory_limit", "shared_memory"),
    "hardware": ("workload", "qos", "huge_pages_amount", "huge_pages_size", "runtime_class"),
    "environment": ("env", "secrets", "image_pull_secret"),
    "command": ("command", "code_path", "code_secret"),
    "topology": ("topology_mode", "topology_level", "spread_policy", "min_workers"),
    "probes": (
        "port",
        "service_port",
        *(f"{p}_{n}" for p in ("readiness", "liveness") for n in ("path", "delay", "period")),
    ),
    "limits": ("max_runtime", "backoff_limit", "ttl"),
    "schedule": ("cron", "time_zone", "concurrency", "starting_deadline", "keep_succeeded", "keep_failed"),
    "checkpoint": ("checkpoint_path", "checkpoint_interval"),
    "labels": ("labels", "description"),
    "places": ("queue", "clusters"),
}
_NODE: Options = (("node", "node"),)
_MODES: tuple[tuple[str, Any], ...] = (
    ("none", gettext_lazy("no")),
    ("prefer", gettext_lazy("prefer")),
    ("require", gettext_lazy("require")),
)
_WORKLOADS: tuple[tuple[str, Any], ...] = (
    ("job", gettext_lazy("Job: runs that end")),
    ("pod", gettext_lazy("Pod: a quick run, tried once")),
    ("statefulset", gettext_lazy("StatefulSet: workers keep their names, until stopped")),
    ("cronjob", gettext_lazy("CronJob: runs that come due")),
)
_CONCURRENCIES: tuple[tuple[str, Any], ...] = (
    ("forbid", gettext_lazy("the next one waits")),
    ("allow", gettext_lazy("they may overlap")),
    ("replace", gettext_lazy("the next one stops it")),
)
_QOS: tuple[tuple[str, Any], ...] = (("guaranteed", gettext_lazy("guaranteed: limits equal requests")),)
_SPREADS: tuple[tuple[str, Any], ...] = (
    ("pack", gettext_lazy("pack on few nodes")),
    ("spread", gettext_lazy("spread over nodes")),
)
_NUMBERS = frozenset(
    {"workers", "replicas", "gpus_per_worker", "min_workers", "backoff_limit", "keep_succeeded", "keep_failed"}
)
_PLACEHOLDERS: Mapping[str, str] = {
    "code_url": "https://git.example/team/repo",
    "code_ref": "HEAD",
    "cpu_request": "8",
    "memory_request": "64Gi",
    "memory_limit": "64Gi",
    "shared_memory": "8Gi",
    "huge_pages_amount": "1Gi",
    "runtime_class": "nvidia",
    "max_runtime": "12h",
    "ttl": "24h",
    "cron": "0 3 * * 1-5",
    "time_zone": "Etc/UTC",
    "starting_deadline": "10m",
    "keep_succeeded": "3",
    "keep_failed": "1",
    "checkpoint_path": "/checkpoints",
    "checkpoint_interval": "10m",
    "readiness_path": "/health",
    "liveness_path": "/health",
}


def _base(data: Mapping[str, Any]) -> Document:
    """Read the document back; whatever else was put there counts as an empty one, its parts are checked later."""
    try:
        base = json.loads(str(data.get("base") or "{}"))
    except (ValueError, RecursionError):
        return {}
    return base if isinstance(base, dict) else {}


def _dress(name: str, field: forms.Field) -> None:
    is_choice = isinstance(field.widget, forms.Select)
    field.widget.attrs["class"] = "form-select" if is_choice else "form-control"
    if name in _PLACEHOLDERS:
        field.widget.attrs["placeholder"] = _PLACEHOLDERS[name]
    if name in _NUMBERS:
        field.widget.attrs["inputmode"] = "numeric"
    if not is_choice:
        field.widget.attrs["autocomplete"] = "off"
        field.widget.attrs["spellcheck"] = "false"
