"""What every decision stands on: situation, state machine, settings that drains claim, capacity, pace, priority."""
