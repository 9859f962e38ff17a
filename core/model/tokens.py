"""Texts to token ids: prompt in front, special tokens asserted, cut to the model's length, counted whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from core.errors import Mistake


@dataclass(frozen=True)
class Encoded:
    """Token ids of some texts: ``ids[doc]`` as the model sees them, ``totals[doc]`` before anything was cut."""

    ids: list[list[int]]
    totals: list[int]


@dataclass(frozen=True)
class Spans:
    """One text's tokens as the model sees them, and the characters that each stands for."""

    ids: list[int]
    characters: list[tuple[int, int] | None]
    """``[start, end)`` in the text; None for special tokens, the prompt's, and where the tokenizer cannot say."""
    special: list[bool]
    """Whether a token is none of the text's own: a special one, or the prompt's."""
    total: int
    """Tokens before anything was cut, special ones and prompt included."""
    words: list[str]
    """The tokens decoded one by one: for tokenizers that know no characters."""


class Tokens:
    """A tokenizer whose special tokens are known for certain.

    ``begin`` and ``end`` are the ids that every text starts and ends with, found by encoding a probe. Recent versions
    of transformers silently drop the end token of e5-mistral-like tokenizers, and GGUF conversions drop Gemma's begin
    token; so what is required and missing is put back here, and what cannot be put back is refused.
    """

    def __init__(self, tokenizer: Any, max_tokens: int, *, need_begin: bool = False, need_end: bool = False) -> None:
        self._tokenizer = tokenizer
        self.max_tokens = max_tokens
        self.begin, self.end = _special_ends(tokenizer)
        self._added_begin = self._missing("begin", tokenizer.bos_token_id) if need_begin and not self.begin else []
        self._added_end = self._missing("end", tokenizer.eos_token_id) if need_end and not self.end else []
        self.begin = self.begin or self._added_begin
        self.end = self.end or self._added_end
        if max_tokens <= len(self.begin) + len(self.end):
            raise Mistake(f"--max-tokens {max_tokens} leaves no room for text. Give a larger number.")

    @property
    def pad_token(self) -> str:
        """The same as text."""
        return str(self._tokenizer.convert_ids_to_tokens(self.pad))

    @property
    def pad(self) -> int:
        """Any id will do, for padding is masked; RoBERTa counts positions by its own one, so that comes first."""
        for token in (self._tokenizer.pad_token_id, self._tokenizer.eos_token_id):
            if token is not None:
                return int(token)
        return 0

    def encode(self, texts: Sequence[str], prompt: str = "") -> Encoded:
        """All texts in one call (the tokenizer spreads them over the cores)."""
        if not texts:
            return Encoded([], [])
        whole = self._tokenizer(
            [prompt + text for text in texts],
            truncation=False,
            padding=False,
            return_attention_mask=False,
            return_token_type_ids=False,
            verbose=False,
        )["input_ids"]
        ids, totals = [], []
        for text_ids in whole:
            if self._added_begin or self._added_end:
                text_ids = [*self._added_begin, *text_ids, *self._added_end]
            totals.append(len(text_ids))
            ids.append(self._cut(text_ids))
        return Encoded(ids, totals)

    @property
    def special_ids(self) -> frozenset[int]:
        """The ids that stand for no text, as [SEP] does."""
        return frozenset(self._tokenizer.all_special_ids)

    def names(self, ids: Sequence[int]) -> list[str]:
        """Each token as text, without the marks of its tokenizer where it has text at all."""
        plain = (self._tokenizer.decode([token]).strip() for token in ids)
        return [
            text or name for text, name in zip(plain, self._tokenizer.convert_ids_to_tokens(list(ids)), strict=True)
        ]

    def spans(self, text: str, prompt: str = "", whole: bool = False, at_most: int | None = None) -> Spans:
        """The tokens of one text with their characters; ``whole`` leaves them uncut, ``at_most`` cuts them shorter."""
        fast = bool(getattr(self._tokenizer, "is_fast", False))
        found = self._tokenizer(
            prompt + text,
            truncation=False,
            padding=False,
            return_attention_mask=False,
            return_token_type_ids=False,
            return_special_tokens_mask=True,
            return_offsets_mapping=fast,
            verbose=False,
        )
        ids, special = list(found["input_ids"]), [bool(mark) for mark in found["special_tokens_mask"]]
        nowhere: list[tuple[int, int]] = [(0, 0)] * len(ids)
        characters: list[tuple[int, int] | None] = []
        for number, (start, end) in enumerate(found["offset_mapping"] if fast else nowhere):
            # A token that the prompt and the text share, as a space between them may be, counts as the text's.
            special[number] = special[number] or (fast and end <= len(prompt) and bool(prompt))
            known = fast and not special[number]
            characters.append((max(0, start - len(prompt)), end - len(prompt)) if known else None)
        before, after = len(self._added_begin), len(self._added_end)
        ids = [*self._added_begin, *ids, *self._added_end]
        special = [True] * before + special + [True] * after
        characters = [None] * before + characters + [None] * after
        total = len(ids)
        if not ids:
            ids, special, characters = [self.pad], [True], [None]
        longest = self.max_tokens if at_most is None else min(self.max_tokens, at_most)
        if total > longest and not whole:
            kept = max(1, longest - len(self.end))
            end = total - len(self.end)
            ids, special, characters = (
                ids[:kept] + self.end,
                special[:kept] + special[end:],
                characters[:kept] + characters[end:],
            )
        words = [] if whole else self._tokenizer.convert_ids_to_tokens(ids)
        return Spans(ids, characters, special, total, words)

    def _cut(self, ids: list[int]) -> list[int]:
        if len(ids) <= self.max_tokens:
            return ids or [self.pad]  # a tokenizer without special tokens gives nothing at all for an empty text
        return ids[: self.max_tokens - len(self.end)] + self.end

    def _missing(self, which: str, token: int | None) -> list[int]:
        if token is None:
            raise Mistake(
                f"This model needs its {which}-of-sequence token, but its tokenizer does not define one. "
                f"Set '{'bos' if which == 'begin' else 'eos'}_token' in the model's tokenizer_config.json."
            )
        return [int(token)]


def _special_ends(tokenizer: Any) -> tuple[list[int], list[int]]:
    """The special ids that the tokenizer itself puts before and after a text."""
    probe = tokenizer("a plain probe", return_attention_mask=False, return_special_tokens_mask=True)
    ids = probe["input_ids"]
    # The mask, not the list of special ids: a word that the tokenizer does not know is no special token.
    real = [position for position, special in enumerate(probe["special_tokens_mask"]) if not special]
    if not real:
        raise Mistake("This model's tokenizer produces no tokens for plain English text. Check its files.")
    return ids[: real[0]], ids[real[-1] + 1 :]
