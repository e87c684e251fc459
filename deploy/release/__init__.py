"""release: makes a version out of a checkout, and artefacts out of a version (docs/how-to/release.md)."""
