"""Run statements of SQLAlchemy Core on a connection."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import sqlalchemy as sa


def run_core(connection: sa.Connection, statement: Any, values: Any) -> Any:
    """Run a statement and return its cursor. A list of values runs it once for each of them.

    SQLAlchemy takes 5 µs to convert a value that the drivers accept as it is. So lists go to the driver directly,
    unless the statement returns rows.
    """
    if not isinstance(values, list) or statement.returning_column_descriptions:
        return connection.execute(statement, values)
    compiled = _compiled(statement, connection.dialect)
    fixed = compiled.params  # values that are part of the statement
    if compiled.positiontup is None:
        return connection.exec_driver_sql(str(compiled), [fixed | row for row in values])
    names = compiled.positiontup
    rows = [tuple([row[name] if name in row else fixed[name] for name in names]) for row in values]
    return connection.exec_driver_sql(str(compiled), rows)


@lru_cache(maxsize=256)
def _compiled(statement: Any, dialect: sa.Dialect) -> Any:
    return statement.compile(dialect=dialect)
