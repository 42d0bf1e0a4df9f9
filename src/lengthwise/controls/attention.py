"""The attention of a model whose controls change it: scaled queries, biases, and attention inside sentences.

It takes the place of the model's own attention function, and calls PyTorch's fused kernel.
"""

from typing import Any

from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from .attached import Model, controls_of, grouping_of, stacks_of
from .masks import biased, explicit_mask, limited, same_sentence, visible_keys

CONTROLLED_ATTENTION = "lengthwise_controls"  # the name of the attention function, for transformers


def replace_attention(model: Model) -> None:
    """Replace the attention function of this model by `controlled_attention`. PyTorch's fused kernels still run."""
    before = model.config._attn_implementation
    model.set_attn_implementation(CONTROLLED_ATTENTION)
    if model.config._attn_implementation != CONTROLLED_ATTENTION:
        raise ValueError(f"{type(model).__name__} has an attention of its own, which controls cannot change")
    model._attention_before = before
    for module in model.modules():
        if hasattr(module, "is_causal"):
            module.__dict__["_lengthwise_model"] = model  # not a submodule; the controls are looked up at each call
    if (control := grouping_of(model)) is not None:
        for stack in stacks_of(model):
            for above, layer in enumerate(reversed(stack.layers)):
                for module in layer.modules():
                    if hasattr(module, "is_causal"):  # lower layers have the same number: they compile to one program
                        module.__dict__["_lengthwise_above"] = min(above, control.global_layers)


def controlled_attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    source_sentences: Tensor | None = None,
    target_sentences: Tensor | None = None,
    **more: Any,
) -> Any:
    """Scale the `query` (batch, heads, time, size), add the biases of the controls, and call the fused kernel.

    With group attention the kernel is called for each branch, with the mask of that branch.
    """
    kind = "decoder" if module.is_causal else "cross" if module.is_decoder else "encoder"
    controls = controls_of(module._lengthwise_model)

    def attend(mask: Tensor | None) -> Tensor:
        seen, scaled = visible_keys(query, key, mask, kind == "decoder"), query
        for control in controls:
            if (scale := control.query_scale(kind, seen)) is not None:
                scaled = scaled * scale.unsqueeze(-1).to(query.dtype)
            if (bias := control.attention_bias(kind, query, key)) is not None:
                mask = biased(bias.to(query.dtype), explicit_mask(mask, kind, query, key))
        output: Tensor = sdpa_attention_forward(module, scaled, key, value, mask, **more)[0]
        return output

    grouping = next((control for control in controls if control.groups_sentences), None)
    if grouping is None:
        return attend(attention_mask), None
    same = same_sentence(kind, query, key, source_sentences, target_sentences)
    inside = limited(explicit_mask(attention_mask, kind, query, key), same)
    above = module._lengthwise_above
    return grouping.attend(kind, above, lambda: attend(inside), lambda: attend(attention_mask)), None


AttentionInterface.register(CONTROLLED_ATTENTION, controlled_attention)
AttentionMaskInterface.register(CONTROLLED_ATTENTION, sdpa_mask)  # else transformers passes no mask
