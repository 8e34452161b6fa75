"""Addresses of the supply: clusters, nodes, the fleet; below console/ what only administrators open."""

from django.urls import path

from clusters.views import checks, clusters, flavors, fleet, node, node_acts, registration

app_name = "clusters"
urlpatterns = [
    path("fleet/", fleet.fleet, name="fleet"),
    path("clusters/", clusters.clusters, name="list"),
    path("clusters/<slug:name>/", clusters.cluster, name="detail"),
    path("clusters/<slug:cluster_name>/nodes/<str:name>/", node.node, name="node"),
    path("console/clusters/new/", registration.new, name="new"),
    path("console/clusters/<slug:name>/edit/", registration.edit, name="edit"),
    path("console/clusters/<slug:name>/levels/", registration.levels, name="levels"),
    path("console/clusters/<slug:name>/checks/", checks.ask, name="ask_checks"),
    path("console/clusters/<slug:cluster_name>/nodes/<str:name>/quarantine/", node_acts.quarantine, name="quarantine"),
    path("console/clusters/<slug:cluster_name>/nodes/<str:name>/release/", node_acts.release, name="release"),
    path(
        "console/clusters/<slug:cluster_name>/nodes/<str:name>/maintenance/", node_acts.maintenance, name="maintenance"
    ),
    path(
        "console/clusters/<slug:cluster_name>/nodes/<str:name>/maintenance/end/",
        node_acts.end_maintenance,
        name="end_maintenance",
    ),
    path("console/flavors/", flavors.flavors, name="flavors"),
    path("console/flavors/<int:pk>/", flavors.edit, name="flavor"),
    path("console/flavors/<int:pk>/remove/", flavors.remove, name="remove_flavor"),
]
