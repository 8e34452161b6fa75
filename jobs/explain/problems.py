"""A problem of a document -> the sentence that a person reads, with the limit that was broken."""

from collections.abc import Iterable, Mapping

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from jobs.jobspec.problem import Problem


def sentence(problem: Problem) -> str:
    """The sentence without the field's name, to stand beside the field."""
    return str(_SENTENCES[problem.code]) % _translated(problem.numbers) + _suggestion(problem)


def full_sentence(problem: Problem) -> str:
    """The sentence with the field's name, to stand alone; the field's path is the same in every language."""
    return f"{problem.field}: {sentence(problem)}" if problem.field else sentence(problem)


def by_field(problems: Iterable[Problem]) -> dict[str, list[str]]:
    """Sentences by field, in the order of the problems; "" holds those of the whole document."""
    sentences: dict[str, list[str]] = {}
    for problem in problems:
        sentences.setdefault(problem.field, []).append(sentence(problem))
    return sentences


def _translated(numbers: Mapping[str, int | str]) -> dict[str, int | str]:
    return {name: str(_WORDS.get(value, value)) if name in _NAMED else value for name, value in numbers.items()}


def _suggestion(problem: Problem) -> str:
    if "suggestion" not in problem.numbers:
        return ""
    return " " + _("Did you mean “%(suggestion)s”?") % problem.numbers


_NAMED = ("expected", "given", "part")
_WORDS: Mapping[int | str, object] = {
    "text": gettext_lazy("a text"),
    "number": gettext_lazy("a number"),
    "whole number": gettext_lazy("a whole number"),
    "true or false": gettext_lazy("true or false"),
    "list": gettext_lazy("a list"),
    "map": gettext_lazy("a map of names to values"),
    "nothing": gettext_lazy("nothing"),
    "something else": gettext_lazy("something else"),
    "minute": gettext_lazy("minute"),
    "hour": gettext_lazy("hour"),
    "day of the month": gettext_lazy("day of the month"),
    "month": gettext_lazy("month"),
    "day of the week": gettext_lazy("day of the week"),
}
_SENTENCES: Mapping[str, object] = {
    "required": gettext_lazy("This field is required."),
    "unknown_field": gettext_lazy("There is no such field."),
    "too_many_unknown_fields": gettext_lazy("There are %(count)d unknown fields here; the first are listed."),
    "wrong_type": gettext_lazy("This must be %(expected)s, not %(given)s."),
    "too_small": gettext_lazy("At least %(min)d, not %(value)d."),
    "too_big": gettext_lazy("At most %(max)d, not %(value)d."),
    "too_long": gettext_lazy("At most %(max)d characters; these are %(length)d."),
    "too_many": gettext_lazy("At most %(max)d entries; these are %(count)d."),
    "bad_choice": gettext_lazy("“%(value)s” is not possible here. Possible: %(choices)s."),
    "duplicate": gettext_lazy("“%(value)s” is given twice."),
    "reserved": gettext_lazy("“%(value)s” is reserved and cannot be set."),
    "nul_byte": gettext_lazy("A text cannot hold the character with the number zero."),
    "bad_text": gettext_lazy("The text holds half a character (a lone surrogate)."),
    "bad_name": gettext_lazy(
        "“%(value)s” is no valid name: small letters a-z, digits and “-” inside, at most %(max)d characters."
    ),
    "bad_label_key": gettext_lazy(
        "“%(value)s” is no label key: a name of at most 63 letters, digits, “-”, “_” and “.”, with an optional "
        "domain and “/” before it."
    ),
    "bad_label_value": gettext_lazy(
        "“%(value)s” is not valid: letters, digits, “-”, “_” and “.”, a letter or digit at both ends, at most "
        "%(max)d characters."
    ),
    "bad_image": gettext_lazy(
        "“%(value)s” is no image reference: [host[:port]/]name[:tag][@digest], the name in small letters."
    ),
    "bad_env_name": gettext_lazy(
        "“%(value)s” is no name of a variable: letters, digits, “_”, “-” and “.”, no digit first."
    ),
    "bad_secret_key": gettext_lazy("“%(value)s” is no key of a secret: letters, digits, “-”, “_” and “.”."),
    "bad_path": gettext_lazy("“%(value)s” is no absolute path such as /data, without “..” and closing “/”."),
    "bad_relative_path": gettext_lazy("“%(value)s” is no path inside the repository, without “..” and first “/”."),
    "bad_url_path": gettext_lazy("“%(value)s” is no path of an address; it starts with “/”."),
    "bad_git_url": gettext_lazy(
        "“%(value)s” is no https:// or ssh:// address with a host and a path; passwords belong into a secret."
    ),
    "bad_git_ref": gettext_lazy("“%(value)s” is no branch, tag or commit."),
    "bad_quantity": gettext_lazy("“%(value)s” is no Kubernetes quantity such as 500m, 16 or 32Gi."),
    "bad_id": gettext_lazy("“%(value)s” is no identifier."),
    "not_above_zero": gettext_lazy("“%(value)s” is not above zero."),
    "request_above_limit": gettext_lazy("The request %(request)s is above the limit %(limit)s."),
    "gpu_request_limit_differ": gettext_lazy(
        "GPUs cannot be shared out: the request %(request)s must equal the limit %(limit)s."
    ),
    "shared_memory_above_limit": gettext_lazy(
        "Shared memory counts as memory: %(shared_memory)s is above the limit %(limit)s."
    ),
    "not_whole_pages": gettext_lazy("%(value)s is no whole number of pages of %(size)s."),
    "huge_pages_alone": gettext_lazy("Huge pages need an amount of CPU or memory beside them."),
    "needed_for_guaranteed": gettext_lazy("Guaranteed resources need an amount here."),
    "guaranteed_request_limit_differ": gettext_lazy(
        "Guaranteed resources are not shared out: the request %(request)s must equal the limit %(limit)s."
    ),
    "min_workers_above_workers": gettext_lazy(
        "At most the %(workers)d workers that are asked for, not %(min_workers)d."
    ),
    "env_or_mount_path": gettext_lazy("A secret needs either “env” or “mount_path”, one of them."),
    "level_without_mode": gettext_lazy("The level “%(value)s” needs the mode “prefer” or “require”."),
    "value_with_exists": gettext_lazy("A toleration with “Exists” takes no value."),
    "seconds_without_no_execute": gettext_lazy("Seconds count only with the effect “NoExecute”."),
    "kind_workload_differ": gettext_lazy("The workload “%(workload)s” does not go with the kind “%(kind)s”."),
    "one_worker_only": gettext_lazy("A quick run is one pod; %(workers)d workers need a Job."),
    "no_retries_of_pods": gettext_lazy("A bare pod is not started again; retries need a Job."),
    "pod_sets_of_jobs_only": gettext_lazy("Only a Job can have further sets of pods."),
    "whole_with_pod_sets": gettext_lazy("With further sets of pods all workers start: leave this out."),
    "not_of_stateful_sets": gettext_lazy("A StatefulSet runs until it is stopped, and nothing of it stays."),
    "parallel_only": gettext_lazy(
        "Workers start together: podManagementPolicy must be Parallel, or each would wait for the one before."
    ),
    "only_for_training": gettext_lazy("Only training has this field."),
    "only_for_inference": gettext_lazy("Only services have this field."),
    "schedule_of_cronjobs_only": gettext_lazy("Only the workload “cronjob” has a schedule."),
    "whole_on_schedule": gettext_lazy("A run on a schedule starts with all its workers: leave this out."),
    "cron_fields": gettext_lazy(
        "A cron text has five fields (minute, hour, day of the month, month, day of the week); this has %(count)d."
    ),
    "cron_shortcut": gettext_lazy("“%(value)s” is not known. Possible: %(choices)s."),
    "cron_syntax": gettext_lazy("“%(value)s” is no %(part)s: numbers, ranges (1-5), steps (*/10), lists (1,3) or *."),
    "cron_value": gettext_lazy("“%(value)s” is no %(part)s: from %(min)d to %(max)d."),
    "cron_backwards": gettext_lazy("The range “%(value)s” of the %(part)s ends before it begins."),
    "cron_never": gettext_lazy("There is no such day in any year: it would never come due."),
    "bad_time_zone": gettext_lazy("“%(value)s” is no time zone such as Etc/UTC or Europe/Berlin."),
    "yaml_too_long": gettext_lazy("At most %(max)d characters of YAML; these are %(length)d."),
    "yaml_syntax": gettext_lazy("No valid YAML at line %(line)d: %(problem)s."),
    "yaml_characters": gettext_lazy("The text holds characters that YAML does not allow."),
    "yaml_key": gettext_lazy("A key must be a plain text (line %(line)d)."),
    "yaml_duplicate_key": gettext_lazy("The key “%(key)s” stands twice in one map (line %(line)d)."),
    "yaml_alias": gettext_lazy("Aliases (“*name”) are not taken; write the value out (line %(line)d)."),
    "yaml_tag": gettext_lazy("The tag “%(tag)s” is not taken (line %(line)d)."),
    "yaml_too_deep": gettext_lazy("At most %(max)d levels of nesting."),
    "yaml_too_many_values": gettext_lazy("At most %(max)d values."),
    "yaml_too_many_documents": gettext_lazy("At most %(max)d documents in one text."),
    "yaml_empty": gettext_lazy("The text is empty."),
    "yaml_several_specs": gettext_lazy("Take one JobSpec at a time; this text holds %(count)d documents."),
    "unknown_objects": gettext_lazy(
        "Take one Job, CronJob, Pod or StatefulSet, or one Deployment with at most one Service, "
        "not %(count)d objects (%(kinds)s)."
    ),
    "cannot_carry": gettext_lazy("This field of Kubernetes cannot be taken over; leave it out."),
    "completions_parallelism_differ": gettext_lazy("All workers start together: completions must equal parallelism."),
    "selector_differs": gettext_lazy("The selector must be labels of the pod template."),
    "labels_differ": gettext_lazy("The label has another value in the pod template."),
    "target_port_differs": gettext_lazy("The target must be the container's port."),
    "volume_source": gettext_lazy(
        "A volume is one claim, one secret, memory for /dev/shm or huge pages for /dev/hugepages."
    ),
    "volume_not_mounted": gettext_lazy("The volume is not mounted by the container."),
    "env_looks_secret": gettext_lazy(
        "“%(name)s” looks like a secret and can be read by the whole team; better refer to a secret."
    ),
    "cores_are_shared": gettext_lazy("A node gives cores of its own only for whole numbers, not for %(cpu)s."),
    "expanded_by_kubernetes": gettext_lazy(
        "Kubernetes replaces $(NAME) and makes $$ one $; write $$(NAME) to keep it."
    ),
    "missing_claim": gettext_lazy(
        "The claim %(claim)s is not in your team's namespace on %(clusters)s: pods there would wait for it."
    ),
    "checkpoint_not_on_a_volume": gettext_lazy("%(path)s is on no volume: checkpoints are lost with the pod."),
}
