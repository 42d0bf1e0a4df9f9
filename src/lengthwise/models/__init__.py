"""From a name to a model: where models are found, how they are saved and loaded."""
