"""Where in a YAML text a field stands, so that a sentence about it can name the line."""

import re

import yaml

_STEP = re.compile(r"[^.\[\]]+|\[\d+\]")


def line_of(text: str, path: str) -> int | None:
    """Return the line, from 1, of a dotted path ("volumes[0].claim") or of the nearest part above it.

    None when the text is no YAML or has nothing of the path. The text must have been read by `yaml_text.read`
    before, which keeps it small.
    """
    try:
        roots = list(yaml.compose_all(text, yaml.CSafeLoader))
    except yaml.YAMLError:
        return None
    found = (_find(root, path) for root in roots)
    return next((line for line in found if line is not None), None)


def _find(root: yaml.Node | None, path: str) -> int | None:
    line, node, rest = None, root, path
    while node is not None and rest:
        step = _key_step(node, rest) if isinstance(node, yaml.MappingNode) else _index_step(node, rest)
        if step is None:
            break
        line, node, rest = step
    return line


def _key_step(node: yaml.MappingNode, path: str) -> tuple[int, yaml.Node, str] | None:
    """Take the longest key that the path begins with: keys of labels have dots themselves."""
    keys = sorted(node.value, key=lambda pair: -len(str(pair[0].value)))
    for key, value in keys:
        name = str(key.value)
        rest = path.removeprefix(name)
        if path.startswith(name) and (not rest or rest[0] in ".["):
            return key.start_mark.line + 1, value, rest.removeprefix(".")
    return None


def _index_step(node: yaml.Node, path: str) -> tuple[int, yaml.Node, str] | None:
    match = _STEP.match(path)
    if not isinstance(node, yaml.SequenceNode) or match is None or not match[0].startswith("["):
        return None
    index = int(match[0][1:-1])
    if index >= len(node.value):
        return None
    value = node.value[index]
    return value.start_mark.line + 1, value, path[match.end() :].removeprefix(".")
