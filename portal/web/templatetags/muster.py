"""Template tags of the look: glyphs, states, gangs, GPU cells, bars, and components that wrap other markup.

Registered as builtins, so templates need no `{% load %}`. Amounts come wrapped in `<bdi>`: a right-to-left
page would show "h 12" else.
"""

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django import template
from django.template.context import Context
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from portal.core import clock, http
from portal.web.icons import SHAPES
from portal.web.quantities import age_text, duration_text, gib_text, money_text
from portal.web.vocabulary import CELLS, FINAL_STATES, PILLS, STATES, UNKNOWN, Look

register = template.Library()

MOST_SQUARES = 16
RAMP_STEP = 20  # per cent of use in one step of the colour ramp u1..u5


# --- glyphs and words ---------------------------------------------------------------------------
@register.simple_tag
def icon(name: str, label: str = "") -> SafeString:
    """Draw an icon: decoration, or an image with a name when `label` is given."""
    role = format_html('role="img" aria-label="{}"', label) if label else SafeString('aria-hidden="true"')
    return format_html(
        '<svg class="m-icon" viewBox="0 0 14 14" focusable="false" {}>{}</svg>',
        role,
        mark_safe(SHAPES[name]),  # noqa: S308 -- our own constant
    )


@register.simple_tag
def state(value: str, stale: bool = False, word: str = "") -> SafeString:  # noqa: FBT001, FBT002
    """Show a state as glyph, word and hue; a stale one keeps its word, marked as the last that was heard."""
    look = STATES.get(value, UNKNOWN)
    text = word or look.word
    if not stale:
        return _glyph_and_word(look, text)
    title = _("The last that was heard; the cluster does not answer now")
    return format_html(
        '<span class="m-state m-neutral m-is-stale" title="{}">{}{} <span class="m-small">{}</span></span>',
        title,
        icon("question"),
        text,
        _("stale"),
    )


@register.simple_tag
def pill(kind: str, text: str = "") -> SafeString:
    """Show an attribute as a pill. Unknown kinds are shown neutral, with their own text."""
    look = PILLS.get(kind, Look(kind, "neutral"))
    glyph = icon(look.glyph) if look.glyph else ""
    return format_html('<span class="m-pill m-{}">{}{}</span>', look.hue, glyph, text or look.word)


@register.simple_tag
def gang(workers: int, held: int = 0, running: int = 0, state: str = "", kind: str = "training") -> SafeString:
    """Draw the gang strip: one square a worker; above 16 workers, 16 squares in proportion and the count.

    `held` of the workers have their place and `running` of those run; in a final state all squares are over.
    """
    shown = min(workers, MOST_SQUARES)
    if state in FINAL_STATES:
        kinds = ["m-over"] * shown
    else:
        runs, places = (_share(part, workers, shown) for part in (running, max(held, running)))
        kinds = ["m-run"] * runs + ["m-held"] * (places - runs) + ["m-wait"] * (shown - places)
    squares = format_html_join("", '<i class="{}"></i>', ((kind,) for kind in kinds))
    many = format_html("<small>{}</small>", workers) if workers > shown else ""
    label = _gang_label(_members(workers, kind), held, running, state)
    return format_html('<span class="m-gang" role="img" aria-label="{}">{}{}</span>', label, squares, many)


@register.simple_tag
def gpu_cells(cells: Iterable[Any]) -> SafeString:
    """Draw GPUs as cells. A cell has a `state` (a key of CELLS), when busy a `util` in per cent, and a `label`."""
    read = [(_read(cell, "state") or "unknown", _read(cell, "util"), _read(cell, "label") or "") for cell in cells]
    drawn = format_html_join("", '<i class="m-gpu {}"{}>{}</i>', (_cell(*one) for one in read))
    counts = {kind: sum(kind == one for one, _util, _label in read) for kind in CELLS}
    parts = ", ".join(f"{number} {CELLS[kind]}" for kind, number in counts.items() if number)
    label = ngettext("%(count)d GPU: %(parts)s", "%(count)d GPUs: %(parts)s", len(read)) % {
        "count": len(read),
        "parts": parts or _("none"),
    }
    return format_html('<span class="m-gpus" role="img" aria-label="{}">{}</span>', label, drawn)


@register.simple_tag
def quota_bar(used: int, nominal: int, most: int | None = None) -> SafeString:
    """Show use of a quota in words and as a bar; what lies above the nominal amount is named and hatched.

    `most` is the end of the bar; by default the larger of both amounts.
    """
    end = max(most or 0, used, nominal, 1)
    within, above = min(used, nominal), max(0, used - nominal)
    words = _("%(used)d of %(nominal)d") % {"used": used, "nominal": nominal}
    extra = _above(above) if above else ""
    bar = _bar([("active", within), ("hatch", above), ("", end - used)])
    return format_html('<span class="m-quota"><span><bdi>{}</bdi>{}</span>{}</span>', words, extra, bar)


@register.simple_tag
def share_bar(parts: Sequence[tuple[str, float]], label: str = "") -> SafeString:
    """Draw shares of a whole: (hue, amount) pairs, the hue `hatch` for a hatched one, empty for a gap."""
    return _bar(parts, label=label, tall=True)


# --- filters ------------------------------------------------------------------------------------
@register.filter
def bdi(value: object) -> SafeString:
    """Keep an id, a node's name or "4 x 8" together in a right-to-left page."""
    return format_html("<bdi>{}</bdi>", value)


@register.filter
def duration(value: timedelta | float | None) -> SafeString:
    """Show a timedelta or a number of seconds; a dash for none."""
    return _dash() if value is None else bdi(duration_text(value))


@register.filter
def money(cents: int | None) -> SafeString:
    """An amount in the currency of the installation."""
    return _dash() if cents is None else bdi(money_text(cents))


@register.filter
def age(value: datetime | None) -> SafeString:
    """Show how long ago a moment was, its date in the title; a dash for none."""
    if value is None:
        return _dash()
    text, title = age_text(value, clock.now()), value.strftime("%Y-%m-%d %H:%M:%S UTC")
    return format_html('<time datetime="{}" title="{}"><bdi>{}</bdi></time>', value.isoformat(), title, text)


@register.filter
def plain(value: object, indent: int | None = None) -> str:
    """Show a stored value as text: a text as it is, all else as JSON, over several lines with an indent."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=indent)


@register.filter
def gib(value: float | None, unit: str = "B") -> SafeString:
    """Show memory in GiB; the argument names the unit it is given in, as in `memory_mib|gib:"MiB"`."""
    return _dash() if value is None else bdi(gib_text(value, unit))


@register.simple_tag
def request_id() -> str:
    """The id under which the log knows this request; works without a request in the context (page 500)."""
    return http.request_id()


# --- components that wrap other markup --------------------------------------------------------------
@register.simple_tag(takes_context=True)
def nav_link(context: Context, name: str, url: str, word: str, count: int | str = "") -> SafeString:
    """One entry of the rail; `name` is its URL name, by which it knows whether it is the current one."""
    shell = context["shell"]
    here = "page" if shell.view_name == name else "true" if shell.section == name else ""
    current = format_html(' aria-current="{}"', here) if here else ""
    number = format_html("<span>{}</span>", count) if count else ""
    return format_html('<a class="m-nav" href="{}"{}><span>{}</span>{}</a>', url, current, word, number)


@register.simple_block_tag(takes_context=True)
def panel(context: Context, content: str, title: str, aside: str = "", id: str = "") -> SafeString:  # noqa: A002
    """A titled surface."""
    return _component(context, "panel", {"content": content, "title": title, "aside": aside, "id": id})


@register.simple_block_tag(takes_context=True)
def answer(context: Context, content: str, reason: str = "", hue: str = "warn") -> SafeString:
    """The answer of a page: the reason first and bold, then detail and acts."""
    return _component(context, "answer", {"content": content, "reason": reason, "hue": hue})


@register.simple_block_tag(takes_context=True)
def group(context: Context, content: str, title: str, summary: str = "", **options: Any) -> SafeString:
    """A closed group of fields with its values in one line; see components/group.html for the options."""
    return _component(context, "group", {"content": content, "title": title, "summary": summary, **options})


@register.simple_block_tag(takes_context=True)
def confirm(context: Context, content: str, id: str, title: str, **options: Any) -> SafeString:  # noqa: A002
    """A dialog before an act that stops work: posts to `url`, its button repeats the `verb`."""
    return _component(context, "confirm", {"content": content, "id": id, "title": title, **options})


@register.simple_block_tag(takes_context=True)
def data_table(context: Context, content: str, label: str, **options: Any) -> SafeString:
    """The shell of a table: scrolls sideways by keyboard, turns rows into two lines on a narrow page."""
    return _component(context, "table", {"content": content, "label": label, **options})


@register.simple_block_tag
def cell(content: str, id: str, tag: str = "span", **attributes: str) -> SafeString:  # noqa: A002
    """A live cell: `data-v` follows from what it shows, so a page that asks again patches only what changed."""
    content = SafeString(content.strip())
    version = f"{zlib.crc32(content.encode()):08x}"
    rest = format_html_join("", ' {}="{}"', attributes.items())
    return format_html(
        '<{} id="{}" data-v="{}"{}>{}</{}>', SafeString(tag), id, version, rest, content, SafeString(tag)
    )


@register.simple_tag(takes_context=True)
def chart(context: Context, id: str, figure: Mapping[str, Any], title: str, **options: Any) -> SafeString:  # noqa: A002
    """A chart from a figure with symbolic colours; see components/chart.html for the options."""
    return _component(context, "chart", {"id": id, "figure": figure, "title": title, **options})


def _component(context: Context, name: str, values: dict[str, Any]) -> SafeString:
    engine = context.template.engine if context.template else template.Engine.get_default()
    inner = context.new({**values, "csrf_token": context.get("csrf_token")})
    return engine.get_template(f"components/{name}.html").render(inner)


def _glyph_and_word(look: Look, word: object) -> SafeString:
    return format_html('<span class="m-state m-{}">{}{}</span>', look.hue, icon(look.glyph), word)


def _above(gpus: int) -> SafeString:
    words = _("%(gpus)d above the quota") % {"gpus": gpus}
    return format_html(' <small class="m-warn"><bdi>{}</bdi></small>', words)


def _share(part: int, whole: int, shown: int) -> int:
    """Scale a count of workers to squares so that neither a few nor nearly all look like none or all."""
    if part <= 0 or part >= whole:
        return shown if part > 0 else 0
    return min(max(1, part * shown // whole), shown - 1) if whole > shown else part


def _members(count: int, kind: str) -> str:
    if kind == "inference":
        return ngettext("%(count)d replica", "%(count)d replicas", count) % {"count": count}
    return ngettext("%(count)d worker", "%(count)d workers", count) % {"count": count}


def _gang_label(total: str, held: int, running: int, state: str) -> str:
    if state in FINAL_STATES:
        return _("%(total)s, over") % {"total": total}
    if running:
        return _("%(total)s, %(running)d running") % {"total": total, "running": running}
    if held:
        return _("%(total)s, %(held)d with a place") % {"total": total, "held": held}
    return _("%(total)s, waiting") % {"total": total}


def _read(cell: Any, name: str) -> Any:
    if isinstance(cell, str):
        return cell if name == "state" else None
    return cell.get(name) if isinstance(cell, Mapping) else getattr(cell, name, None)


def _cell(kind: str, util: float | None, label: str) -> tuple[str, SafeString | str, SafeString | str]:
    rate = "" if util is None else _("%(util)d %%") % {"util": round(util)}
    words = ", ".join(filter(None, (label, rate)))
    title = format_html(' title="{}"', words) if words else ""
    if kind == "busy":
        # A GPU that is held but has no sample yet is busy at an unknown rate: the lowest step, never "free".
        step = min(5, int((util or 0) // RAMP_STEP) + 1)
        return f"m-u{step}", title, ""
    return f"m-gpu-{kind}", title, icon("cross") if kind == "fault" else ""


def _bar(parts: Sequence[tuple[str, float]], label: str = "", *, tall: bool = False) -> SafeString:
    whole = sum(amount for _hue, amount in parts) or 1
    ends, start = [], 0.0
    for hue, amount in parts:
        ends.append((hue, 100 * start / whole, 100 * amount / whole))
        start += amount
    shapes = format_html_join("", "{}", ((_bar_part(*part),) for part in ends if part[0] and part[2]))
    role = format_html('role="img" aria-label="{}"', label) if label else SafeString('aria-hidden="true"')
    size = " m-meter-tall" if tall else ""
    return format_html('<svg class="m-meter{}" focusable="false" {}>{}</svg>', size, role, shapes)


def _bar_part(hue: str, start: float, width: float) -> SafeString:
    x, end, size = f"{start:.2f}%", f"{start + width:.2f}%", f"{width:.2f}%"
    if hue == "hatch":
        return format_html('<line class="m-hatch" x1="{}" x2="{}" y1="50%" y2="50%"/>', x, end)
    return format_html('<rect class="m-fill-{}" x="{}" width="{}" height="100%"/>', hue, x, size)


def _dash() -> SafeString:
    return format_html('<span class="m-muted" title="{}">&ndash;</span>', _("not known"))
