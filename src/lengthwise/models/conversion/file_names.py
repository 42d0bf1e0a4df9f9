"""The names of the files of a converted model, and of the controls that it may have."""

SETTINGS = "onnx.json"  # sizes and special ids
GRAPH = "model.onnx"  # of a decoder
ENCODER, DECODER = "encoder.onnx", "decoder.onnx"  # of an encoder-decoder
EMBEDDINGS = "embeddings.safetensors"
MARIAN_CONTROLS = ("countdown_head", "encoding", "prompt")  # that the onnx engine runs; a model has one of them
