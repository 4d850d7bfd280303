"""The shared mailbox table: MariaDB or MySQL at a site, SQLite in the embedded profile."""
