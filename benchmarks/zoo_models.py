"""Architectures of HuggingFace transformers, from their configurations and with random weights: nothing is downloaded.

They are small enough for seconds and have what the large ones have: about 192 wide and 6 layers deep. Data are of a step:
the same number gives the same batch.
"""
from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import torch
import transformers

VOCABULARY, WIDTH, LAYERS, HEADS, LABELS = 512, 192, 6, 6, 10

Loss = Callable[[torch.nn.Module, int], torch.Tensor]


@dataclasses.dataclass(frozen=True)
class Architecture:
    title: str
    make_model: Callable[[], torch.nn.Module]
    make_batch: Callable[[torch.Generator], dict[str, Any]]

    def make(self) -> tuple[torch.nn.Module, Loss]:
        """Returns a model and a function from the model and the number of a step to the loss."""
        return self.make_model(), lambda model, step: model(**self.make_batch(torch.Generator().manual_seed(step))).loss


# ---- batches ---------------------------------------------------------------------------------------------------------


def tokens(count: int = 4, length: int = 192) -> Callable[[torch.Generator], dict[str, Any]]:
    def make(generator: torch.Generator) -> dict[str, Any]:
        ids = torch.randint(0, VOCABULARY, (count, length), generator=generator)
        return {"input_ids": ids, "labels": ids}

    return make


def images(size: int, count: int = 8) -> Callable[[torch.Generator], dict[str, Any]]:
    def make(generator: torch.Generator) -> dict[str, Any]:
        return {
            "pixel_values": torch.randn(count, 3, size, size, generator=generator),
            "labels": torch.randint(0, LABELS, (count,), generator=generator),
        }

    return make


def sounds(length: int, count: int = 4) -> Callable[[torch.Generator], dict[str, Any]]:
    def make(generator: torch.Generator) -> dict[str, Any]:
        return {
            "input_features": torch.randn(count, 80, 2 * length, generator=generator),
            "labels": torch.randint(0, VOCABULARY, (count, length // 2), generator=generator),
        }

    return make


def captions(size: int, count: int = 8) -> Callable[[torch.Generator], dict[str, Any]]:
    def make(generator: torch.Generator) -> dict[str, Any]:
        return {
            "pixel_values": torch.randn(count, 3, size, size, generator=generator),
            "input_ids": torch.randint(0, VOCABULARY, (count, 64), generator=generator),
            "return_loss": True,
        }

    return make


# ---- models ----------------------------------------------------------------------------------------------------------


def of_words(model: str, config: str, **more: Any) -> Callable[[], torch.nn.Module]:
    """Most of them share these names."""
    return of(model, config, vocab_size=VOCABULARY, hidden_size=WIDTH, num_hidden_layers=LAYERS,
              num_attention_heads=HEADS, **more)  # fmt: skip


def of(model: str, config: str, **settings: Any) -> Callable[[], torch.nn.Module]:
    return lambda: getattr(transformers, model)(getattr(transformers, config)(**settings))


def clip() -> torch.nn.Module:
    part = {"hidden_size": WIDTH, "intermediate_size": 4 * WIDTH, "num_hidden_layers": LAYERS,
            "num_attention_heads": HEADS, "projection_dim": WIDTH}  # fmt: skip
    words = {"vocab_size": VOCABULARY, "max_position_embeddings": 64, "bos_token_id": 0, "eos_token_id": 1}
    return transformers.CLIPModel(
        transformers.CLIPConfig(
            text_config=part | words, vision_config=part | {"image_size": 64, "patch_size": 8}, projection_dim=WIDTH
        )
    )


GROUPED = {"num_key_value_heads": 2, "use_cache": False}  # heads of keys and values that several queries share

ARCHITECTURES = {
    "gpt2": Architecture(
        "GPT-2",
        of("GPT2LMHeadModel", "GPT2Config", vocab_size=VOCABULARY, n_positions=256, n_embd=WIDTH, n_layer=LAYERS,
           n_head=HEADS, use_cache=False),
        tokens(),
    ),
    "llama": Architecture(
        "Llama", of_words("LlamaForCausalLM", "LlamaConfig", intermediate_size=512, **GROUPED), tokens()
    ),
    "mistral": Architecture(
        "Mistral, sliding window",
        of_words("MistralForCausalLM", "MistralConfig", intermediate_size=512, sliding_window=64, **GROUPED),
        tokens(),
    ),
    "mixtral": Architecture(
        "Mixtral, 4 experts",
        of_words("MixtralForCausalLM", "MixtralConfig", intermediate_size=256, num_local_experts=4,
                 num_experts_per_tok=2, output_router_logits=True, **GROUPED),
        tokens(),
    ),
    "qwen3": Architecture(
        "Qwen3", of_words("Qwen3ForCausalLM", "Qwen3Config", intermediate_size=512, head_dim=32, **GROUPED), tokens()
    ),
    "bert": Architecture("BERT", of_words("BertForMaskedLM", "BertConfig", intermediate_size=4 * WIDTH), tokens()),
    "deberta": Architecture(
        "DeBERTa v2",
        of_words("DebertaV2ForMaskedLM", "DebertaV2Config", intermediate_size=4 * WIDTH, relative_attention=True,
                 pos_att_type=["c2p", "p2c"], max_relative_positions=64),
        tokens(length=128),
    ),
    "t5": Architecture(
        "T5",
        of("T5ForConditionalGeneration", "T5Config", vocab_size=VOCABULARY, d_model=WIDTH, d_kv=32, d_ff=4 * WIDTH,
           num_layers=4, num_heads=HEADS, decoder_start_token_id=0, use_cache=False),
        tokens(length=128),
    ),
    "vit": Architecture(
        "ViT",
        of("ViTForImageClassification", "ViTConfig", hidden_size=WIDTH, num_hidden_layers=LAYERS,
           num_attention_heads=HEADS, intermediate_size=4 * WIDTH, image_size=96, patch_size=8, num_labels=LABELS),
        images(96),
    ),
    "swin": Architecture(
        "Swin",
        of("SwinForImageClassification", "SwinConfig", image_size=112, embed_dim=48, depths=[2, 4, 2],
           num_heads=[3, 6, 12], num_labels=LABELS),
        images(112),
    ),
    "convnext": Architecture(
        "ConvNeXt",
        of("ConvNextForImageClassification", "ConvNextConfig", hidden_sizes=[48, 96, 192], depths=[2, 4, 2],
           num_stages=3, image_size=96, num_labels=LABELS),
        images(96),
    ),
    "whisper": Architecture(
        "Whisper",
        of("WhisperForConditionalGeneration", "WhisperConfig", vocab_size=VOCABULARY, d_model=WIDTH, encoder_layers=4,
           decoder_layers=4, encoder_attention_heads=HEADS, decoder_attention_heads=HEADS, encoder_ffn_dim=4 * WIDTH,
           decoder_ffn_dim=4 * WIDTH, max_source_positions=192, dropout=0.1, use_cache=False, pad_token_id=0,
           bos_token_id=1, eos_token_id=2, decoder_start_token_id=3),
        sounds(192),
    ),
    "mamba": Architecture(
        "Mamba, without its CUDA kernels",
        of("MambaForCausalLM", "MambaConfig", vocab_size=VOCABULARY, hidden_size=96, num_hidden_layers=4,
           state_size=8, use_cache=False),
        tokens(length=64),
    ),
    "clip": Architecture("CLIP", clip, captions(64)),
}  # fmt: skip

#: Which a test tries when there is little time: a decoder, one whose operators depend on the data, and one for images.
FEW = ("llama", "mixtral", "swin")
