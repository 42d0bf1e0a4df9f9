"""The Debian corpus: package descriptions and their translations, from the package archive."""
