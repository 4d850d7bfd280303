"""The invariants I1 to I12 as one checker over what was observed (spec README).

The same checks serve ``run.py verify``, the crash tests and the simulator.
"""
