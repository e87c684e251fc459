"""Growth: what predrain takes as the number of disks grows, and where each figure bends."""
