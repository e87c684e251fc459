"""The decision of one poll: from the situation to proposals, plans, steps and holds."""
