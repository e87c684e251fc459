"""Runs the migrations for every alembic command, on the connection and in the transaction that it was given."""

from __future__ import annotations

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    transactional_ddl=True,
    on_version_apply=context.config.attributes["note"],
)
with context.begin_transaction():
    context.run_migrations()
