"""Addresses of queues and of the policy console."""

from django.urls import path

from quotas.views import console, ladder, queues, spaces

app_name = "quotas"
urlpatterns = [
    path("queues/", queues.queues, name="queues"),
    path("queues/<int:queue_id>/", queues.queue, name="queue"),
    path("console/policy/", console.console, name="console"),
    path("console/policy/cohorts/", console.add_cohort, name="add_cohort"),
    path("console/policy/queues/", console.add_queue, name="add_queue"),
    path("console/policy/priorities/", ladder.add, name="add_priority"),
    path("console/policy/priorities/<int:pk>/", ladder.edit, name="priority"),
    path("console/policy/priorities/<int:pk>/teams/", ladder.grant, name="grant_priority"),
    path("console/policy/priorities/<int:pk>/remove/", ladder.remove, name="remove_priority"),
    # kind is "cohort" or "queue"
    path("console/policy/<slug:kind>/<int:pk>/quota/<int:flavor_id>/", console.quota, name="quota"),
    path("console/policy/<slug:kind>/<int:pk>/rename/", console.rename, name="rename"),
    path("console/policy/<slug:kind>/<int:pk>/remove/", console.remove, name="remove"),
    path("console/policy/queues/<int:pk>/pause/", console.pause, name="pause"),
    path("console/policy/queues/<int:pk>/default/", console.make_default, name="make_default"),
    path("console/clusters/<slug:name>/spaces/", spaces.spaces, name="spaces"),
    path("console/clusters/<slug:name>/spaces/apply/", spaces.apply, name="apply_space"),
    path("console/clusters/<slug:name>/spaces/keep/", spaces.keep, name="keep_spaces"),
    path("console/clusters/<slug:name>/spaces/guard/", spaces.guard, name="guard_spaces"),
]
