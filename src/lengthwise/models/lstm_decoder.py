"""An encoder-decoder with an LSTM decoder, for LenInit (Kikuchi et al. 2016): Marian's encoder, LSTMs and attention.

A decoder layer is an LSTM, then attention to the encoder, each with a residual connection and layer normalisation. The
LSTM of the second layer reads what the first one attended to, so it can record which part of the source is written. In
the decoder of Luong, Pham & Manning 2015 the attention is the input of the next step, which would need one call per
step; without that input the decoder did not learn to copy from the source (docs/LOG.md).

Importing this file makes the model known to transformers. Every step of generation reads the whole text again, so beams
need no bookkeeping of LSTM states; a fused LSTM reads a title in a few milliseconds.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, scaled_dot_product_attention
from transformers import AutoConfig, AutoModelForSeq2SeqLM, MarianConfig, MarianMTModel
from transformers.modeling_outputs import BaseModelOutputWithPastAndCrossAttentions

MODEL_TYPE = "marian_lstm"  # in config.json


class LstmMarianConfig(MarianConfig):  # type: ignore[misc]  # transformers is untyped
    """Marian's settings, without Transformer layers in the decoder, and the layers of the LSTM."""

    model_type = MODEL_TYPE
    lstm_layers: int = 2


class LstmLayer(nn.Module):
    """An LSTM and attention to the encoder's states."""

    def __init__(self, config: LstmMarianConfig) -> None:
        super().__init__()
        width = config.d_model
        self.heads, self.dropout = config.decoder_attention_heads, config.dropout
        self.start = nn.Linear(width, width)  # from the mean of the encoder's states to the initial hidden state
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.lstm_norm, self.attention_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, inputs: Tensor, states: Tensor, mask: Tensor, cell: Tensor | None) -> Tensor:
        """Return hidden states (batch, time, dim), given those below and the encoder's (batch, source, dim)."""
        hidden = self.lstm_norm(inputs + self._dropped(self._read(inputs, states, mask, cell)))
        query, key, value = map(self._split, (self.query(hidden), self.key(states), self.value(states)))
        found = scaled_dot_product_attention(query, key, value, mask[:, None, None, :])
        attended = self.out(found.transpose(1, 2).flatten(2))
        normed: Tensor = self.attention_norm(hidden + self._dropped(attended))
        return normed

    def _read(self, inputs: Tensor, states: Tensor, mask: Tensor, cell: Tensor | None) -> Tensor:
        """Return the outputs of the LSTM, (batch, time, dim). Without autocast: in bfloat16 a cell cannot count."""
        own = self.start.weight.dtype
        with torch.autocast(inputs.device.type, enabled=False):
            weights = mask.unsqueeze(-1).to(own)
            mean = (states.to(own) * weights).sum(1) / weights.sum(1)
            hidden = torch.tanh(self.start(mean)).unsqueeze(0)  # (one layer, batch, dim)
            cells = torch.zeros_like(hidden) if cell is None else cell.to(own).unsqueeze(0)
            outputs: Tensor = self.lstm(inputs.to(own), (hidden, cells.expand_as(hidden).contiguous()))[0]
        return outputs

    def _split(self, values: Tensor) -> Tensor:
        """(batch, time, dim) -> (batch, heads, time, size)."""
        return values.view(*values.shape[:-1], self.heads, -1).transpose(1, 2)

    def _dropped(self, values: Tensor) -> Tensor:
        return dropout(values, self.dropout, self.training)


class LstmDecoder(nn.Module):
    """Reads decoder inputs and encoder states, and returns hidden states: the interface of Marian's decoder."""

    def __init__(self, config: LstmMarianConfig) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(config.vocab_size, config.d_model, config.pad_token_id)
        self.embed_scale = math.sqrt(config.d_model) if config.scale_embedding else 1.0
        self.dropout = config.dropout
        self.lstm = nn.ModuleList(LstmLayer(config) for _ in range(config.lstm_layers))

    def get_input_embeddings(self) -> nn.Module:
        return self.embed_tokens

    def forward(
        self,
        input_ids: Tensor | None = None,
        *,
        encoder_hidden_states: Tensor,
        encoder_attention_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        initial_cell: Tensor | None = None,
        output_hidden_states: bool = False,
        **ignored: Any,
    ) -> Any:
        """Return hidden states (batch, time, dim). `initial_cell`: (batch, dim), of every layer; default: zeros."""
        inputs = self.embed_tokens(input_ids) if inputs_embeds is None else inputs_embeds
        mask = encoder_attention_mask  # (batch, source), or (batch, 1, 1, source)
        mask = torch.ones_like(encoder_hidden_states[..., 0]) if mask is None else mask.reshape(len(mask), -1)
        hidden = dropout(inputs * self.embed_scale, self.dropout, self.training)
        for layer in self.lstm:
            hidden = layer(hidden, encoder_hidden_states, mask.bool(), initial_cell)
        return BaseModelOutputWithPastAndCrossAttentions(
            last_hidden_state=hidden, hidden_states=(hidden,) if output_hidden_states else None
        )


class LstmMarianMTModel(MarianMTModel):  # type: ignore[misc]
    """A translator of Marian's interface whose decoder is a `LstmDecoder`."""

    config_class = LstmMarianConfig

    def __init__(self, config: LstmMarianConfig) -> None:
        super().__init__(config)
        self.model.decoder = LstmDecoder(config)
        self.tie_weights()


AutoConfig.register(MODEL_TYPE, LstmMarianConfig)
AutoModelForSeq2SeqLM.register(LstmMarianConfig, LstmMarianMTModel)
