"""``Grammar``: the form of a handle, an id or another name, which readers of links, params and pages share."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema


@dataclass(frozen=True)
class Grammar:
    """The form of a name. In ``Annotated``, it makes a pydantic field accept only texts of this form.

    Python's ``re`` alone decides. Pydantic would apply the expression by another library, which differs from it. In the
    JSON schema, the expression is the ``pattern``.
    """

    expression: str
    expected: str
    """The message for other texts: a sentence without a full stop, which begins in lower case."""

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(self.expression)

    def matches(self, text: str) -> bool:
        """Whether a whole text has this form."""
        return self._pattern.fullmatch(text) is not None

    def check(self, text: str) -> str:
        """Return a text of this form unchanged.

        Raises:
            ValueError: the text has another form.
        """
        if not self.matches(text):
            raise ValueError(self.expected)
        return text

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema of a text that is checked."""
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return the JSON schema of a text with a pattern."""
        return {**handler(schema), "pattern": f"^{self.expression}$"}
