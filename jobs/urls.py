"""Addresses of jobs."""

from django.urls import path

from jobs.views import detail, export, incidents, lists, preview, train_serve

app_name = "jobs"
urlpatterns = [
    path("train/", train_serve.new_training, name="new_training"),
    path("serve/", train_serve.new_service, name="new_service"),
    path("train/convert/", train_serve.convert, name="convert"),
    path("train/preview/", preview.panel, name="preview"),
    path("train/manifest/", preview.manifest, name="manifest"),
    path("jobs/", lists.jobs, name="list"),
    path("services/", lists.services, name="services"),
    path("jobs.csv", export.jobs, name="list_csv"),
    path("services.csv", export.services, name="services_csv"),
    path("jobs/cancel/", lists.cancel_selected, name="cancel_selected"),
    path("jobs/label/", lists.label_selected, name="label_selected"),
    path("incidents/", incidents.incidents, name="incidents"),
    path("incidents.csv", incidents.incidents_csv, name="incidents_csv"),
    path("jobs/<slug:uid>/", detail.job, name="detail"),
    path("jobs/<slug:uid>/again/", train_serve.again, name="again"),
    path("jobs/<slug:uid>/cancel/", detail.cancel, name="cancel"),
    path("jobs/<slug:uid>/pause/", detail.pause, name="pause"),
    path("jobs/<slug:uid>/scale/", detail.scale, name="scale"),
]
