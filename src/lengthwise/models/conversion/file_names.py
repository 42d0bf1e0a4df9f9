"""The names of the files of a converted model."""

SETTINGS = "onnx.json"  # sizes and special ids
GRAPH = "model.onnx"  # of a decoder
ENCODER, DECODER = "encoder.onnx", "decoder.onnx"  # of an encoder-decoder
EMBEDDINGS = "embeddings.safetensors"
