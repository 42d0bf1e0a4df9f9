"""From checkpoints to ONNX graphs for the onnx engine, with numpy and without torch."""
