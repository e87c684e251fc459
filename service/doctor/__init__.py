"""The checks of `predrain doctor`: each check reads one thing, and yields what it found and the cure."""
