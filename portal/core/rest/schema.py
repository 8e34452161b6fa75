"""The OpenAPI document says how errors look."""

from typing import Any

from drf_spectacular import openapi
from drf_spectacular.plumbing import ResolvedComponent

from portal.core.rest.problem import CONTENT_TYPE

_TEXT = {"type": "string"}
PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "code", "detail", "errors"],
    "properties": {
        "type": {"type": "string", "format": "uri"},
        "title": _TEXT,
        "status": {"type": "integer"},
        "code": {"type": "string", "description": "Stable; what a program may decide by."},
        "detail": {"type": "string", "description": "A sentence for people."},
        "request_id": {"type": "string", "description": "Of a 500 alone: what the log knows the request by."},
        "numbers": {"type": "object", "description": "The numbers in the sentence.", "additionalProperties": True},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["field", "code", "message"],
                "properties": {"field": {"type": "string", "nullable": True}, "code": _TEXT, "message": _TEXT},
            },
        },
    },
}


class AutoSchema(openapi.AutoSchema):
    """Adds to each operation that any error is a problem."""

    def _get_response_bodies(self, direction: Any = "response") -> Any:
        bodies = super()._get_response_bodies(direction)
        content = {CONTENT_TYPE: {"schema": self._problem().ref}}
        bodies["4XX"] = {"description": "Refused.", "content": content}
        bodies["5XX"] = {"description": "Failed.", "content": content}
        return bodies

    def _problem(self) -> ResolvedComponent:
        component: ResolvedComponent = ResolvedComponent(  # type: ignore[no-untyped-call]
            name="Problem", type=ResolvedComponent.SCHEMA, schema=PROBLEM, object="portal.core.rest.problem"
        )
        if component not in self.registry:
            self.registry.register(component)
        return component
