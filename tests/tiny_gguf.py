"""Write tiny models of transformers as GGUF files, with the vocabulary of a byte-level tokenizer."""

import json
from pathlib import Path
from typing import Any

import gguf
import numpy as np

TEMPLATE = "{% for m in messages %}{{ m['content'] }}{% if m['role'] == 'assistant' %}</s>{% endif %}{% endfor %}"


def write_gguf(
    path: Path,
    model: Any,
    tokenizer: Any,
    template: str | None = TEMPLATE,
    add_bos: bool = False,
    eot: int | None = None,
) -> Path:
    """Write a Llama-, Mistral- or Qwen2-type model in float32."""
    config = model.config
    kind = "qwen2" if config.model_type == "qwen2" else "llama"
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    writer = gguf.GGUFWriter(path, kind)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(size)
    writer.add_value_length(size)
    writer.add_rope_dimension_count(size)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    add_vocabulary(writer, tokenizer, template)
    writer.add_add_bos_token(add_bos)
    if eot is not None:
        writer.add_eot_token_id(eot)
    names = gguf.get_tensor_name_map(getattr(gguf.MODEL_ARCH, kind.upper()), config.num_hidden_layers)
    for key, value in model.state_dict().items():
        name = names.get_name(key, try_suffixes=(".weight", ".bias"))
        if name is None or (key == "lm_head.weight" and config.tie_word_embeddings):  # None: of a control
            continue
        array = value.float().numpy()
        if kind == "llama" and key.endswith(("q_proj.weight", "k_proj.weight")):
            array = paired(array, size)
        writer.add_tensor(name, np.ascontiguousarray(array))
    return written(writer, path)


def write_encoder_decoder(path: Path, tokenizer: Any) -> Path:
    """Write a T5-type model of zeros."""
    width, writer = 32, gguf.GGUFWriter(path, "t5")
    writer.add_context_length(64)
    writer.add_embedding_length(width)
    writer.add_feed_forward_length(width)
    writer.add_block_count(1)
    writer.add_head_count(4)
    writer.add_key_length(8)
    writer.add_value_length(8)
    writer.add_layer_norm_eps(1e-6)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_relative_attn_buckets_count(8)
    add_vocabulary(writer, tokenizer, None)
    square, vector = np.zeros((width, width), np.float32), np.zeros(width, np.float32)
    writer.add_tensor("token_embd.weight", np.zeros((len(tokenizer), width), np.float32))
    for side, attentions in {"enc": ("attn",), "dec": ("attn", "cross_attn")}.items():
        writer.add_tensor(f"{side}.output_norm.weight", vector)
        writer.add_tensor(f"{side}.blk.0.attn_rel_b.weight", np.zeros((8, 4), np.float32))
        for name in (*attentions, "ffn"):
            writer.add_tensor(f"{side}.blk.0.{name}_norm.weight", vector)
        for name in [f"{attention}_{part}" for attention in attentions for part in "qkvo"] + ["ffn_up", "ffn_down"]:
            writer.add_tensor(f"{side}.blk.0.{name}.weight", square)
    return written(writer, path)


def add_vocabulary(writer: gguf.GGUFWriter, tokenizer: Any, template: str | None) -> None:
    trained = json.loads(tokenizer.backend_tokenizer.to_str())["model"]
    special = set(tokenizer.all_special_ids)
    ids = range(len(tokenizer))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokenizer.convert_ids_to_tokens(list(ids)))
    writer.add_token_types([gguf.TokenType.CONTROL if n in special else gguf.TokenType.NORMAL for n in ids])
    writer.add_token_merges([" ".join(pair) for pair in trained["merges"]])
    writer.add_bos_token_id(tokenizer.bos_token_id)
    writer.add_eos_token_id(tokenizer.eos_token_id)
    writer.add_pad_token_id(tokenizer.pad_token_id)
    if template:
        writer.add_chat_template(template)


def paired(array: np.ndarray, size: int) -> np.ndarray:
    """Return the rows of queries or keys in the order of GGUF: those that are rotated together are neighbours."""
    return array.reshape(-1, 2, size // 2, array.shape[1]).swapaxes(1, 2).reshape(array.shape)


def written(writer: gguf.GGUFWriter, path: Path) -> Path:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
