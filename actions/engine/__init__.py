"""The decision of one look: from the situation to proposals, plans, steps and holds."""
