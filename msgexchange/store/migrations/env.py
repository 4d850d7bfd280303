"""What Alembic runs: on the connection it is given, inside that connection's transaction."""

from alembic import context

from msgexchange.store.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
