"""The parts that every decision uses: situation, state machine, settings that drains claim, capacity, pace,
priority.
"""
