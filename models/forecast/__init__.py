"""The forecast: hazard, life expectancy, calibration, training, the bundle, and the outlooks from it."""
