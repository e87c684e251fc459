"""Other clusters: their services are asked for their overviews."""
