"""YAML text <-> plain values: as strict as a public form must be, and byte-exact for every string."""

import re
from collections.abc import Iterator, Mapping

import yaml

from jobs.jobspec.problem import Problem, SpecError, shown

LONGEST = 262_144
DEEPEST = 32
MOST_NODES = 20_000
MOST_DOCUMENTS = 4

_STRING_TAGS = (None, "!", "tag:yaml.org,2002:str")
_NEVER_FOLD = 2**30


def read(text: str) -> list[object]:
    """The documents of a YAML text as plain values.

    Refuses with SpecError: more than 256 kB, aliases (a few lines of them can stand for gigabytes), tags, deep
    nesting, a key given twice, and whatever is no YAML. "yes", dates and "1:30" are texts, as YAML 1.2 has it.
    """
    if len(text) > LONGEST:
        raise _refusal("yaml_too_long", length=len(text), max=LONGEST)
    try:
        text.encode()
        _check_events(text)
        return [document for document in yaml.load_all(text, _Loader) if document is not None]
    except yaml.MarkedYAMLError as error:
        line = _line(error.problem_mark)
        raise _refusal("yaml_syntax", line=line, problem=shown(error.problem or "")) from error
    except (yaml.YAMLError, UnicodeEncodeError) as error:
        raise _refusal("yaml_characters") from error


def write(*documents: Mapping[str, object]) -> str:
    """The documents as YAML, keys in their order, long texts on one line; `read` gives the same values."""
    return yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_NEVER_FOLD, indent=2)


class _Loader(yaml.CSafeLoader):
    """YAML 1.2's plain values; a key twice in one map is an error."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[object, object]:  # noqa: FBT001, FBT002
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _refusal("yaml_key", line=_line(key.start_mark))
            if key.value in seen:
                raise _refusal("yaml_duplicate_key", line=_line(key.start_mark), key=shown(key.value))
            seen.add(key.value)
        return super().construct_mapping(node, deep)


class _Dumper(yaml.CSafeDumper):
    """Quotes whatever any YAML reader could take for something else than a text."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002  the base class passes it
        return True


def _represent_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=_style(text))


def _style(text: str) -> str | None:
    if not all(char.isprintable() or char == "\n" for char in text):
        return '"'
    # A block keeps its lines only when none ends in a space and the first has no indent of its own.
    if "\n" in text:
        return "|" if re.fullmatch(r"(?![ \n])(?:(?:.*[^ \n])?\n)+", text) else '"'
    return None


_CORE_VALUES = (
    ("tag:yaml.org,2002:null", re.compile(r"~|null|Null|NULL|"), ["~", "n", "N", ""]),
    ("tag:yaml.org,2002:bool", re.compile(r"true|True|TRUE|false|False|FALSE"), list("tTfF")),
    ("tag:yaml.org,2002:int", re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})"), list("-+0123456789")),
    (
        "tag:yaml.org,2002:float",
        re.compile(r"[-+]?(?:[0-9]{1,20}\.[0-9]{0,20}|\.[0-9]{1,20}|[0-9]{1,20}(?=[eE]))(?:[eE][-+]?[0-9]{1,3})?"),
        list("-+0123456789."),
    ),
)
for _tag, _pattern, _first in _CORE_VALUES:
    _whole = re.compile(rf"(?:{_pattern.pattern})$")
    _Loader.add_implicit_resolver(_tag, _whole, _first)
    _Dumper.add_implicit_resolver(_tag, _whole, _first)
_Dumper.add_representer(str, _represent_text)


def _check_events(text: str) -> None:
    depth = nodes = documents = 0
    for event in _events(text):
        if isinstance(event, yaml.AliasEvent):
            raise _refusal("yaml_alias", line=_line(event.start_mark))
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
        if isinstance(event, yaml.NodeEvent):
            nodes += 1
            _check_tag(event)
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        for code, count, most in (
            ("yaml_too_deep", depth, DEEPEST),
            ("yaml_too_many_values", nodes, MOST_NODES),
            ("yaml_too_many_documents", documents, MOST_DOCUMENTS),
        ):
            if count > most:
                raise _refusal(code, max=most)


def _events(text: str) -> Iterator[yaml.Event]:
    yield from yaml.parse(text, yaml.CSafeLoader)


def _check_tag(event: yaml.NodeEvent) -> None:
    tag = getattr(event, "tag", None)
    if tag not in _STRING_TAGS:
        raise _refusal("yaml_tag", line=_line(event.start_mark), tag=shown(tag))


def _line(mark: object) -> int:
    return int(getattr(mark, "line", 0)) + 1


def _refusal(code: str, **numbers: int | str) -> SpecError:
    return SpecError((Problem(field="", code=code, numbers=numbers),))
