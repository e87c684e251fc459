"""What `predrain doctor` looks at: each look reads one thing, and says what it found and the cure."""
