"""Objects as text to paste."""

from collections.abc import Iterable

import yaml

from clusters.manifests.values import Json


def to_yaml(objects: Iterable[Json]) -> str:
    """One YAML document for each object, its fields in their order; `kubectl apply -f -` takes them."""
    return yaml.dump_all(objects, Dumper=_Plain, sort_keys=False, allow_unicode=True, width=120)


class _Plain(yaml.SafeDumper):
    """Writes every value out where it stands: a reader of roles shall not follow anchors."""

    def ignore_aliases(self, _data: object) -> bool:
        return True
