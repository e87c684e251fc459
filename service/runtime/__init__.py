"""The process's own surroundings: its logging, its interpreter, its identity and its threads."""
