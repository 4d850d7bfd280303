"""The shell: commands of ``run.py``; tables for people, ``--json`` for programs (spec 5.7)."""
