"""A job as REST shows it: one document of plain values, the same for lists and details."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime

from clusters.selectors.capacity import stale_cluster_ids
from jobs.explain.stored import sentence_of
from jobs.models import Job
from jobs.selectors.placement import AttemptPlace, RankPlace, places_of
from jobs.selectors.proof import AWAITING_PROOF, awaited_by
from jobs.selectors.schedules import due_times_of
from portal.core import clock

Document = dict[str, object]


def job_documents(jobs: Sequence[Job]) -> list[Document]:
    """Return the documents of many jobs in a fixed number of queries."""
    places = places_of(jobs)
    stale = stale_cluster_ids(clock.now())
    return [_document(job, places.get(job.pk, []), stale) for job in jobs]


def job_document(job: Job) -> Document:
    """Return one job's document, with all its attempts."""
    places = places_of([job], newest_only=False).get(job.pk, [])
    return _document(job, places, stale_cluster_ids(clock.now()))


def _document(job: Job, places: Sequence[AttemptPlace], stale: set[int]) -> Document:
    newest = places[0] if places else None
    holds = newest is not None and job.state in Job.HOLDING
    return {
        "id": job.uid,
        "number": job.number,
        "full_name": job.full_name,
        **{key: job.spec.get(key) for key in ("name", "kind", "workload", "description", "image")},
        "team": job.team.slug,
        "queue": job.queue.name,
        "owner": job.owner.username,
        "priority": job.priority_class.name,
        "labels": job.labels,
        "spec": job.spec,
        "gpus": job.gpus,
        "workers": job.workers,
        "gpus_per_worker": job.gpus_per_worker,
        "state": job.state,
        "outcome": _outcome(job),
        "reason": _reason(job, newest),
        "position": job.position,
        "gpus_ahead": job.gpus_ahead,
        "placement": _placement(newest) if newest else None,
        "attempt": newest.attempt.number if newest else 0,
        "attempts": [_attempt(place) for place in places],
        "cluster_stale": bool(holds and newest and newest.attempt.cluster_id in stale),
        "exclusions": [
            {"node": each["name"], "why": each["why"], "failed_at": each["at"], "until": each["until"]}
            for each in job.exclusions_at(clock.now())
        ],
        "commit": job.commit or None,
        "endpoint": endpoint_of(job, newest) if holds else None,
        "replicas_ready": newest.ready if newest and holds else 0,
        "warnings": job.warnings,
        "parent": job.parent.uid if job.parent else None,
        "is_paused": job.is_paused if job.is_schedule else None,
        "next_times": due_times_of(job),
        "is_synthetic": job.is_synthetic,
        "cancel_requested_at": _text(job.cancel_requested_at),
        "created_at": _text(job.created_at),
        "admitted_at": _text(job.admitted_at),
        "started_at": _text(job.started_at),
        "finished_at": _text(job.finished_at),
        "version": job.version,
    }


def _outcome(job: Job) -> Document | None:
    if not job.is_final:
        return None
    return {
        "code": job.outcome_code or None,
        "exit_code": job.exit_code,
        "rank": job.outcome_rank,
        "message": job.outcome_message,
    }


def _reason(job: Job, place: AttemptPlace | None) -> Document | None:
    if job.state == Job.State.STOPPING and place:
        awaited = awaited_by(place)
        return {"code": AWAITING_PROOF, "message": " ".join(awaited.sentences()), "numbers": asdict(awaited)}
    if not job.reason_code or job.is_final:
        return None
    return {
        "code": job.reason_code,
        "message": sentence_of(job.reason_code, job.reason_numbers),
        "numbers": job.reason_numbers,
    }


def _placement(place: AttemptPlace) -> Document:
    attempt = place.attempt
    return {
        "cluster": attempt.cluster.name,
        "level": attempt.level,
        "slowest_link": slowest_link_of(place),
        "nodes": [{"rank": r.rank, "node": r.node, "rack": rack_of(r), "gpus": r.gpus} for r in place.ranks],
    }


def slowest_link_of(place: AttemptPlace) -> str:
    """The slowest link that the GPUs of a placement use."""
    return slowest_link(place.attempt.level, place.link, sum(rank.gpus for rank in place.ranks))


def slowest_link(level: str, inside: str, gpus: int) -> str:
    """Name the slowest link by the lowest level that holds all GPUs; `inside` is the one within a node.

    Empty where nothing is linked: fewer than two GPUs, or a level that is not known.
    """
    if gpus < 2 or not level:
        return ""
    return inside if level == "node" else f"network within one {level}"


def rack_of(rank: RankPlace) -> str:
    """The rack of a rank's node, from whichever of its labels names one."""
    return next((value for key, value in rank.labels.items() if key.endswith(("/rack", "-rack", ".rack"))), "")


def _attempt(place: AttemptPlace) -> Document:
    attempt = place.attempt
    return {
        "number": attempt.number,
        "cluster": attempt.cluster.name,
        "object_name": attempt.object_name,
        "namespace": attempt.namespace,
        "step": attempt.step,
        "workers": attempt.workers,
        "started_at": _text(attempt.started_at),
        "ended_at": _text(attempt.ended_at),
        "stop": {"code": attempt.stop_code, "message": attempt.stop_message, "rank": attempt.stop_rank}
        if attempt.stop_code or attempt.stop_message
        else None,
    }


def endpoint_of(job: Job, place: AttemptPlace | None) -> str | None:
    """The address of a service inside its cluster."""
    port = job.spec.get("service_port")
    if not job.is_service or place is None or port is None:
        return None
    return f"http://{place.attempt.object_name}.{place.attempt.namespace}.svc:{port}"


def _text(at: datetime | None) -> str | None:
    return at.isoformat() if at else None
