"""An encoder-decoder with an LSTM decoder, for LenInit (Kikuchi et al. 2016): Marian's encoder, LSTM and attention.

The decoder is that of Luong, Pham & Manning 2015: the output of the LSTM attends to the encoder, and a layer mixes the
two. Importing this file makes the model known to transformers. Every step of generation reads the whole text again, so
beams need no bookkeeping of LSTM states; a fused LSTM reads a title in a few milliseconds.
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


class LstmDecoder(nn.Module):
    """Reads decoder inputs and encoder states, and returns hidden states: the interface of Marian's decoder."""

    def __init__(self, config: LstmMarianConfig) -> None:
        super().__init__()
        width = config.d_model
        self.embed_tokens = nn.Embedding(config.vocab_size, width, config.pad_token_id)
        self.embed_scale = math.sqrt(width) if config.scale_embedding else 1.0
        self.dropout = config.dropout
        self.start = nn.Linear(width, width)  # from the mean of the encoder's states to the initial hidden state
        between = config.dropout if config.lstm_layers > 1 else 0.0  # PyTorch applies it between layers
        self.lstm = nn.LSTM(width, width, config.lstm_layers, batch_first=True, dropout=between)
        self.query = nn.Linear(width, width)
        self.mix = nn.Linear(2 * width, width)

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
        mask = mask.bool()
        written = self._dropped(self._read(inputs * self.embed_scale, encoder_hidden_states, mask, initial_cell))
        states = encoder_hidden_states.to(written.dtype).unsqueeze(1)  # (batch, one head, source, dim)
        query = self.query(written).unsqueeze(1).to(states.dtype)
        context = scaled_dot_product_attention(query, states, states, mask[:, None, None, :]).squeeze(1)
        mixed = self._dropped(torch.tanh(self.mix(torch.cat([context, written], -1))))
        return BaseModelOutputWithPastAndCrossAttentions(
            last_hidden_state=mixed, hidden_states=(mixed,) if output_hidden_states else None
        )

    def _read(self, inputs: Tensor, states: Tensor, mask: Tensor, cell: Tensor | None) -> Tensor:
        """Return the outputs of the LSTM, (batch, time, dim). Without autocast: in bfloat16 a cell cannot count."""
        own = self.start.weight.dtype
        with torch.autocast(inputs.device.type, enabled=False):
            weights = mask.unsqueeze(-1).to(own)
            mean = (states.to(own) * weights).sum(1) / weights.sum(1)
            layers, width = self.lstm.num_layers, self.lstm.hidden_size
            hidden = torch.tanh(self.start(mean)).expand(layers, -1, -1).contiguous()
            cell = torch.zeros_like(hidden[0]) if cell is None else cell.to(own)
            cells = cell.expand(layers, len(inputs), width).contiguous()
            outputs: Tensor = self.lstm(self._dropped(inputs.to(own)), (hidden, cells))[0]
        return outputs

    def _dropped(self, values: Tensor) -> Tensor:
        return dropout(values, self.dropout, self.training)


class LstmMarianMTModel(MarianMTModel):  # type: ignore[misc]
    """A translator of Marian's interface whose decoder is a `LstmDecoder`."""

    config_class = LstmMarianConfig

    def __init__(self, config: LstmMarianConfig) -> None:
        super().__init__(config)
        self.model.decoder = LstmDecoder(config)
        self.tie_weights()


AutoConfig.register(MODEL_TYPE, LstmMarianConfig)
AutoModelForSeq2SeqLM.register(LstmMarianConfig, LstmMarianMTModel)
