"""Marks for slow tests of a store: the fast tier runs them on SQLite or on PostgreSQL, the soak tier on both."""

import pytest

FAST_ON_SQLITE, FAST_ON_POSTGRESQL = (
    pytest.mark.parametrize(
        "location",
        [
            store if store == fast else pytest.param(store, marks=pytest.mark.soak)
            for store in ("sqlite_store", "postgresql_store")
        ],
        indirect=True,
    )
    for fast in ("sqlite_store", "postgresql_store")
)
ON_POSTGRESQL = pytest.mark.parametrize("location", ["postgresql_store"], indirect=True)
