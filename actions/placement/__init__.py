"""Where PGs may lie: failure domains, what a change of the map would do, and devices that fail together."""
