"""From a finding to what a person reads: what was found, with its numbers, and what to do about it.

`sentence` may be read by everybody. `details` name teams' namespaces, accounts and answers of the cluster, and `advice`
is for those who can follow it: both are for administrators alone.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.formats import date_format
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from clusters.models import ClusterFinding

Numbers = Mapping[str, Any]

TITLES: Mapping[str, str | Promise] = {
    "version": gettext_lazy("Kubernetes version"),
    "clock": gettext_lazy("Clock"),
    "rights": gettext_lazy("Rights"),
    "token": gettext_lazy("Token"),
    "canary": gettext_lazy("Trial run"),
    "policy": gettext_lazy("Pinning at creation"),
    "spaces": gettext_lazy("Spaces of teams"),
    "guards": gettext_lazy("By-passes"),
    "accelerators": gettext_lazy("Flavors"),
    "topology": gettext_lazy("Topology labels"),
    "taint": gettext_lazy("Dedicated nodes"),
    "native_gangs": gettext_lazy("Gangs of Kubernetes"),
    "engines": gettext_lazy("Other engines"),
}


@dataclass(frozen=True, slots=True)
class Told:
    """A finding in words."""

    sentence: str
    details: tuple[str, ...] = ()
    advice: str = ""


def title(code: str) -> str:
    """Return what a check is about. An unknown one, of a newer version, is shown as it is."""
    return str(TITLES.get(code, code))


def tell(finding: ClusterFinding) -> Told:
    """Return the finding in words."""
    numbers: Numbers = finding.numbers
    if "error" in numbers:
        return Told(_("The cluster did not answer this."), (str(numbers["error"]),))
    write = _WRITERS.get(finding.code)
    return write(numbers) if write else Told(finding.code)


def _version(numbers: Numbers) -> Told:
    if "oldest" not in numbers:
        return Told(_("The server does not say its version."))
    told = {"version": numbers["version"], "oldest": numbers["oldest"]}
    if numbers.get("is_old"):
        return Told(
            _(
                "Kubernetes %(version)s is too old, so nothing is placed here: "
                "%(oldest)s is the oldest that can start gangs."
            )
            % told,
            advice=_("Upgrade the cluster; work is placed there again by itself."),
        )
    return Told(_("Kubernetes %(version)s; %(oldest)s is the oldest that works.") % told)


def _clock(numbers: Numbers) -> Told:
    if "seconds" not in numbers:
        return Told(_("The server does not tell its time of day."))
    seconds, most = numbers["seconds"], numbers["most"]
    if abs(seconds) <= most:
        return Told(_("Its clock and ours agree to %(most)d s.") % {"most": most})
    told = {"seconds": abs(seconds), "most": most}
    sentence = (
        _("Its clock is %(seconds)d s ahead of ours; %(most)d s do no harm.") % told
        if seconds > 0
        else _("Its clock is %(seconds)d s behind ours; %(most)d s do no harm.") % told
    )
    return Told(sentence, advice=_("Let both machines follow the same time servers (NTP)."))


def _rights(numbers: Numbers) -> Told:
    missing = numbers.get("missing") or []
    if not missing:
        return Told(_("The account has every right that the portal needs."), _user(numbers))
    sentence = ngettext(
        "The account lacks %(count)d right that the portal needs.",
        "The account lacks %(count)d rights that the portal needs.",
        len(missing),
    ) % {"count": len(missing)}
    return Told(sentence, (*_user(numbers), *_grouped(missing)), _("Let the cluster's administrator apply this:"))


def _token(numbers: Numbers) -> Told:
    kind = numbers.get("is")
    if kind == "opaque":
        return Told(
            _("The token does not say when it ends."),
            advice=_("A token of a service account, made by “kubectl create token”, does, and can be renewed."),
        )
    if kind == "endless":
        return Told(
            _("The token never ends: whoever finds it can use it for ever."),
            advice=_("Register the cluster with a token that ends, and let the account renew it."),
        )
    told = {"day": date_format(datetime.fromisoformat(numbers["ends_at"]), "DATETIME_FORMAT")}
    if kind == "over":
        return Told(
            _("The token ended on %(day)s: the cluster does not know us any more.") % told,
            advice=_("Choose Edit and paste a kubeconfig with a new token."),
        )
    if numbers.get("renews"):
        return Told(_("The token ends on %(day)s and is renewed before.") % told)
    if kind == "short":
        return Told(
            _("The token ends on %(day)s, and the account may not renew it.") % told,
            advice=_("Choose Edit and paste a kubeconfig with a new token; or let the account renew its own:"),
        )
    return Told(_("The token ends on %(day)s.") % told)


def _policy(numbers: Numbers) -> Told:
    kind = numbers.get("is")
    if kind == "in_place":
        return Told(_("The policy is in place: each pod of a gang is born on its node, without a patch."))
    if kind == "not_offered":
        return Told(
            _("Pods wait at a gate and are released one by one: the cluster has no mutating admission policies."),
            advice=_("Kubernetes serves them from 1.36 on; with one, pods are pinned as they are created."),
        )
    if kind == "forbidden":
        return Told(
            _("The account may not look whether the policy is there, so pods wait at a gate."),
            _user(numbers),
            _("Large gangs start about twice as fast with it. Let the cluster's administrator apply this:"),
        )
    if kind == "altered":
        return Told(
            _("The policy is not as the portal made it, so it is not relied on: pods wait at a gate."),
            tuple(numbers.get("kinds") or ()),
            _("Let the cluster's administrator apply it again:"),
        )
    return Told(
        _("The policy that pins pods at their creation is missing, so pods wait at a gate."),
        advice=_("Large gangs start about twice as fast with it. Let the cluster's administrator apply this:"),
    )


def _spaces(numbers: Numbers) -> Told:
    if not numbers["all"]:
        return Told(_("There is no team yet, so there is no space to look at."))
    told = {key: numbers[key] for key in ("all", "in_step", "drifted", "missing", "unknown")}
    if numbers["in_step"] == numbers["all"]:
        return Told(_("All %(all)d are in step: namespaces, quotas, network policies and priority classes.") % told)
    return Told(
        _("Of %(all)d, %(in_step)d are in step, %(drifted)d drifted, %(missing)d missing, %(unknown)d not known.")
        % told,
        advice=_("Choose Spaces to see what differs, and to have it applied."),
    )


def _guards(numbers: Numbers) -> Told:
    kind = numbers["is"]
    if kind == "off":
        return Told(_("No policy against by-passes is wanted: who may make pods in a team's namespace may take GPUs."))
    if kind == "left":
        return Told(
            _("Policies against by-passes are on the cluster, and none is wanted."),
            advice=_("Choose Spaces and say that they are wanted, or let the cluster's administrator delete them."),
        )
    if kind == "forbidden":
        return Told(
            _("The account may not look whether the policies against by-passes are there."),
            advice=_("Choose Spaces: the rights that it takes are there to paste."),
        )
    if kind == "differs":
        return Told(
            _("The policies against by-passes are missing or not as the portal made them, so they may let through."),
            tuple(f"{kind} {name}: {STATE_WORDS.get(state, state)}" for kind, name, state in numbers["differs"]),
            _("Choose Spaces: there is the YAML that the cluster's administrator applies."),
        )
    if numbers["wanted"] == "audit":
        return Told(_("By-passes are told of and not refused: the policies are in place."))
    return Told(_("By-passes are refused: the policies are in place."))


STATE_WORDS: Mapping[str, str | Promise] = {
    "missing": gettext_lazy("missing"),
    "outdated": gettext_lazy("changed here"),
    "altered": gettext_lazy("changed there"),
}


def _accelerators(numbers: Numbers) -> Told:
    if "nodes" not in numbers:
        return Told(_("No node is known yet."))
    if not numbers["nodes"]:
        return Told(
            _("No node offers a GPU."),
            advice=_("Is the device plug-in of the GPUs' maker installed on the cluster?"),
        )
    if not numbers["unknown"]:
        sentence = ngettext(
            "The GPUs of %(nodes)d node have a flavor.", "The GPUs of all %(nodes)d nodes have a flavor.",
            numbers["nodes"],
        )  # fmt: skip
        return Told(sentence % {"nodes": numbers["nodes"]})
    share = {
        "unknown": numbers["unknown"],
        "nodes": numbers["nodes"],
        "percent": _percent(numbers["unknown"], numbers["nodes"]),
    }
    return Told(
        _("%(unknown)d of %(nodes)d GPU nodes (%(percent)d %%) offer GPUs that no flavor takes; nobody can use them.")
        % share,
        tuple(_kind(*row) for row in numbers["kinds"]),
        _("Define a flavor for each of these under Clusters, Flavors; a node without a product needs the label first."),
    )


def _topology(numbers: Numbers) -> Told:
    if not numbers.get("nodes"):
        return Told(_("No GPU node is known yet."))
    levels = numbers["levels"]
    if not levels:
        return Told(_("No level is defined above the node: a gang may be spread over the whole cluster."))
    patchy = [row for row in levels if row[2] < 100]
    rows = tuple(
        _("%(level)s (%(key)s): %(percent)d %%") % {"level": row[0], "key": row[1], "percent": row[2]} for row in levels
    )
    if not patchy:
        return Told(_("All %(nodes)d GPU nodes carry the label of every level.") % {"nodes": numbers["nodes"]}, rows)
    worst = min(row[2] for row in patchy)
    return Told(
        _("Not every GPU node carries the label of every level: down to %(percent)d %% of %(nodes)d nodes.")
        % {"percent": worst, "nodes": numbers["nodes"]},
        rows,
        _("Label the nodes or correct the levels: a node without its label is in no domain of that level."),
    )


def _taint(numbers: Numbers) -> Told:
    if not numbers.get("nodes"):
        return Told(_("No GPU node is known yet."))
    told = {key: numbers[key] for key in ("nodes", "tainted", "key")}
    if numbers["tainted"] == numbers["nodes"]:
        return Told(_("All %(nodes)d GPU nodes keep other pods away by their taint.") % told)
    return Told(
        _("%(tainted)d of %(nodes)d GPU nodes carry the taint that keeps other pods away.") % told,
        advice=_("Taint the nodes that the portal alone shall use: kubectl taint nodes NAME %(key)s=true:NoSchedule")
        % told,
    )


def _native_gangs(numbers: Numbers) -> Told:
    kind = numbers.get("is")
    if kind == "ready":
        return Told(_("The cluster's own scheduler binds a gang whole or not at all: each gang is a PodGroup."))
    if kind == "dropped":
        return Told(
            _("The cluster knows PodGroups and does not heed them; the portal starts gangs whole by itself."),
            advice=_(
                "Set the feature gate GenericWorkload on the API server, the controller manager and the scheduler, "
                "and the scheduler binds a gang whole or not at all."
            ),
        )
    if kind == "forbidden":
        return Told(
            _("The cluster binds gangs whole, and the account may not ask for it: it may not make PodGroups."),
            (*_user(numbers), *_grouped(numbers.get("missing") or [])),
            _("The portal starts gangs whole by itself until then. Let the cluster's administrator apply this:"),
        )
    if kind == "refused":
        return Told(
            _("The cluster refused a PodGroup, so none is made until all is checked again."),
            (str(numbers.get("text") or ""),),
            _("Choose Check again: it says what is missing."),
        )
    if kind == "no_namespace":
        return Told(_("Whether the cluster binds gangs whole is tried in the namespace of a team: there is none yet."))
    return Told(_("The cluster has no PodGroups of its own; the portal starts gangs whole by itself."))


def _engines(numbers: Numbers) -> Told:
    found = numbers.get("found") or []
    if not found:
        return Told(_("None is installed."))
    return Told(_("Installed: %(names)s. The portal does not use them.") % {"names": ", ".join(found)})


def _canary(numbers: Numbers) -> Told:
    kind = numbers.get("is")
    if kind == "ok":
        times = numbers["ms"]
        return Told(
            _("A gated Job was made, opened, changed and deleted; its pod came after %(pod)d ms.") % times,
            (
                _("create %(create)d ms, open %(open)d ms, patch %(patch)d ms, delete %(delete)d ms, gone %(gone)d ms")
                % times,
                _("in the namespace %(namespace)s") % numbers,
            ),
        )
    if kind == "no_team":
        return Told(_("There is no team yet, so there is no namespace to try a run in."))
    if kind == "no_namespace":
        return Told(
            _("The cluster has the namespace of no team: nothing can start there."),
            tuple(numbers["namespaces"]),
            _("Let the cluster's administrator create the namespaces of the teams, and the portal's rights in them."),
        )
    if kind == "stays":
        return Told(
            _("The trial Job was deleted and does not go away."),
            (f"{numbers['namespace']}/{numbers['name']}",),
            _("Look at its finalizers, and whether the cluster's controller manager works."),
        )
    return _refused(numbers)


def _refused(numbers: Numbers) -> Told:
    where = _("in the namespace %(namespace)s") % numbers
    text = (str(numbers["text"]),) if numbers.get("text") else ()
    if numbers.get("is_right"):
        return Told(_("The trial run stopped at a right that is missing."), (*text, where))
    step = numbers["step"]
    return Told(
        str(_STEPS.get(step, _STEPS["create"])),
        (*text, where),
        str(_STEP_ADVICE.get(step, _STEP_ADVICE["create"])),
    )


_STEPS: Mapping[str, str | Promise] = {
    "create": gettext_lazy("The cluster refuses the trial Job."),
    "open": gettext_lazy("The cluster refuses to open the trial Job."),
    "pod": gettext_lazy("The trial Job got no pod."),
    "gate": gettext_lazy("Something takes our gate away from pods or puts others before it."),
    "patch": gettext_lazy("The cluster refuses a change of the trial pod."),
    "delete": gettext_lazy("The cluster refuses to delete the trial Job."),
}
_STEP_ADVICE: Mapping[str, str | Promise] = {
    "create": gettext_lazy("A webhook, a policy or a quota of the cluster says no: its own words are above."),
    "pod": gettext_lazy("If no reason is given above: does the cluster's controller manager work?"),
    "gate": gettext_lazy("Look for a webhook that changes the pods of Jobs: the portal cannot pin such pods."),
}
_WRITERS: Mapping[str, Callable[[Numbers], Told]] = {
    "version": _version,
    "clock": _clock,
    "rights": _rights,
    "token": _token,
    "canary": _canary,
    "policy": _policy,
    "spaces": _spaces,
    "guards": _guards,
    "accelerators": _accelerators,
    "topology": _topology,
    "taint": _taint,
    "native_gangs": _native_gangs,
    "engines": _engines,
}


def _user(numbers: Numbers) -> tuple[str, ...]:
    return (_("account: %(user)s") % numbers,) if numbers.get("user") else ()


def _grouped(missing: list[list[str]]) -> tuple[str, ...]:
    """One line for each kind and place: "team-vision: create, patch jobs.batch"."""
    verbs: dict[tuple[str, str, str], list[str]] = {}
    for namespace, group, resource, verb, *_name in missing:
        verbs.setdefault((namespace, group, resource), []).append(verb)
    return tuple(
        f"{namespace or _('all namespaces')}: {', '.join(found)} {resource}{'.' if group else ''}{group}"
        for (namespace, group, resource), found in verbs.items()
    )


def _kind(resource: str, product: str, nodes: int) -> str:
    told = {"resource": resource, "product": product or _("no product label"), "nodes": nodes}
    return (
        ngettext("%(resource)s, %(product)s: %(nodes)d node", "%(resource)s, %(product)s: %(nodes)d nodes", nodes)
        % told
    )


def _percent(part: int, whole: int) -> int:
    """A share of nodes in whole per cent, and never none when there is one."""
    return max(1, 100 * part // whole)
