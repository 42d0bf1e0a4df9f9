"""An HTTP server: the OpenAI API with lengths, translation, shortening, and a playground."""
