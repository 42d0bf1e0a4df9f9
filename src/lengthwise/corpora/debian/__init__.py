"""Package descriptions and their translations, built from what apt serves."""
