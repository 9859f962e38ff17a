"""Texts in, head vectors at every stage out: the same code for the job and for a document in the app."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from core.errors import Mistake
from core.model.ablation import Change, Heads, Swept, ablated, mean_outputs, sweep, without
from core.model.attention import Attended, Keep, Matrix, Piece, attention, attention_matrix, pieces_of, read_attention
from core.model.batches import batches, choose_max_tokens, pad
from core.model.card import ModelCard, read_model_card
from core.model.compiled import CompiledBlocks
from core.model.copies import Arrivals
from core.model.device import TOKEN_BUDGETS, choose_device, choose_precision, is_out_of_memory, pinned
from core.model.extract import HeadExtractor, Rows
from core.model.induction import random_rows, repeated_attention
from core.model.ledger import Ledger, WordPairs, check_exact, ledgers, source_shares, word_pairs
from core.model.locate import ModelFiles, default_models_dir, locate
from core.model.packing import check_packs
from core.model.pooling import check_pooling
from core.model.presets import DEFAULT_MODEL, Preset
from core.model.shape import ModelShape
from core.model.share_space import ShareSpace
from core.model.sizes import check_sizes
from core.model.stages import NO_SHARES, check_head
from core.model.tokens import Tokens

if TYPE_CHECKING:
    import torch


_LEDGER_BYTES = 2**26
"""What the tokens of a batch of ledgers may take; a longer text is a batch of its own."""


@dataclass(frozen=True)
class EmbedderConfig:
    """How a model is to be used; None leaves it to the preset, then to the model's own files."""

    model: str = DEFAULT_MODEL
    layers: tuple[int | None, ...] = (None,)
    """As people count them, from 1; None is the last."""
    pooling: str | None = None
    prompt: str | None = None
    query_prompt: str | None = None
    max_tokens: int | None = None
    device: str | None = None
    dtype: str | None = None
    token_budget: int | None = None
    padding: str = "right"
    trust_remote_code: str | None = None
    """The model's name once more: only code that was asked for by name is run."""
    models_dir: Path | None = None
    shares: bool | None = False
    """Whether stage 4 is read too. True refuses a model without exact shares; None leaves it out there, with a note."""
    packed: bool = False
    """Batches without padding; see core/model/packing.py."""
    compile: bool = False
    """Blocks are compiled by torch; see core/model/compiled.py."""

    def __post_init__(self) -> None:
        if self.trust_remote_code not in (None, self.model):
            raise Mistake(
                f"--trust-remote-code names '{self.trust_remote_code}', but the model is '{self.model}'. "
                "Name the model whose code is to be run."
            )

    @property
    def trusted(self) -> bool:
        return self.trust_remote_code is not None

    def locate(self, fetch: bool = True) -> ModelFiles:
        """The model's files: found, fetched (only with ``fetch``) or converted, and checked."""
        return locate(self.model, self.models_dir or default_models_dir(), self.trusted, fetch)


@dataclass(frozen=True)
class Untrained:
    """Asks for random weights instead of the model's own."""

    seed: int
    check: Callable[[int, str], None]
    """Given the number of parameters and the device before anything is allocated; may refuse."""


@dataclass(frozen=True)
class ModelInfo:
    """What the manifest records about the model: enough to embed another document in just the same way."""

    name: str
    revision: str
    shape: ModelShape
    layers: tuple[int, ...]
    """The layers that were read, from 1."""
    pooling: str
    prompt: str
    query_prompt: str
    max_tokens: int
    dtype: str
    notes: tuple[str, ...] = ()
    shares: bool = False
    """Whether stage 4 is read."""

    @property
    def stages(self) -> tuple[int, ...]:
        """Those that are read."""
        return self.shape.possible_stages if self.shares else self.shape.stages

    def record(self) -> dict[str, Any]:
        """As a manifest has it."""
        return {
            "name": self.name,
            "revision": self.revision,
            **asdict(self.shape),
            "layer": self.layers[-1],
            "pooling": self.pooling,
            "prompt": self.prompt,
            "query_prompt": self.query_prompt,
            "max_tokens": self.max_tokens,
            "dtype": self.dtype,
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class Embedded:
    """Head vectors of some documents, float32, not normalised."""

    attention: np.ndarray
    """Stage 1: ``[layer, doc, head * dim]``."""
    projected: np.ndarray
    """Stage 2: ``[layer, doc, hidden]``."""
    output: np.ndarray
    """Stage 3: ``[doc, hidden]``."""
    tokens: np.ndarray
    """``[doc]``: tokens of the whole text, special ones and prompt included."""
    truncated: np.ndarray
    """``[doc]``: whether the model saw only the beginning."""
    outputs: np.ndarray | None = None
    """Stage 3 of every layer that was asked for, ``[layer, doc, hidden]``, where it was read of all (``every_layer``):
    what the layer's block leaves to the next, and at the model's last layer ``output``."""
    shares: np.ndarray | None = None
    """Stage 4, where it was asked for: ``[layer, doc, head * dim]``."""

    def stage(self, stage: int, layer: int = -1) -> np.ndarray:
        """``[doc, width]`` at ``stage``; ``layer`` indexes the layers that were asked for."""
        if stage == 3:
            return self.output if self.outputs is None else self.outputs[layer]
        if stage == 4:
            if self.shares is None:
                raise Mistake("Stage 4 was not read. Load the model with its shares.")
            return self.shares[layer]
        return (self.attention if stage == 1 else self.projected)[layer]


Room = Callable[[str, tuple[int, ...]], np.ndarray]
"""Makes room for vectors: a float32 array of that shape, for the field of Embedded of that name."""


def in_memory(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Room where there is enough of it."""
    return np.empty(shape, dtype=np.float32)


class Embedder:
    """A loaded model, ready to embed; calls from several threads take turns."""

    def __init__(self, extractor: HeadExtractor, tokens: Tokens, info: ModelInfo, config: EmbedderConfig) -> None:
        self.info = info
        self.extractor = extractor
        """The loaded model with its family and shape: for code that edits its weights."""
        self._tokens = tokens
        self._device = next(extractor.model.parameters()).device
        self._config = config
        self._budget = config.token_budget or TOKEN_BUDGETS.get(self._device.type, 8_192)
        self._padding = config.padding
        self._turn = threading.Lock()
        self._exact = config.shares  # then the loader has asked
        self._compiled = CompiledBlocks(extractor) if config.compile else None

    @classmethod
    def load(
        cls, config: EmbedderConfig | None = None, files: ModelFiles | None = None, untrained: Untrained | None = None
    ) -> Embedder:
        """Loads a model; ``files`` are its files where they have been located already.

        With ``untrained``, its weights are random ones and everything else is the same.
        """
        config = config or EmbedderConfig()
        files = files or config.locate()
        card = read_model_card(files.folder, config.pooling)
        device = choose_device(config.device)
        dtype = choose_precision(config.dtype, device)
        model, tokenizer = _load(files.folder, files.name, device, dtype, config.trusted, untrained)
        extractor = HeadExtractor(model)
        if config.packed:
            check_packs(model, extractor.family)
        preset = files.preset or Preset(hub=None, licence="")
        pooling = check_pooling(
            config.pooling or preset.pooling or card.pooling or ("last" if extractor.causal else "mean")
        )
        tokens = Tokens(
            tokenizer,
            choose_max_tokens(config.max_tokens, preset.max_tokens or card.max_tokens, model, tokenizer),
            need_begin=extractor.family.needs_begin_token or (pooling == "last" and card.adds_begin),
            need_end=pooling == "last" and (preset.need_end or card.adds_end),
        )
        shape = extractor.shape
        extractor.layers, extractor.pooling = tuple(shape.layer_index(layer) for layer in config.layers), pooling
        without_shares = _prepare_shares(extractor, config.shares)
        info = ModelInfo(
            name=files.name,
            revision=files.revision,
            shape=shape,
            layers=tuple(shape.layer_index(layer) + 1 for layer in config.layers),
            pooling=pooling,
            prompt=_first(config.prompt, preset.prompt if files.preset else None, card.prompt, ""),
            query_prompt=_first(
                config.query_prompt, preset.query_prompt if files.preset else None, card.query_prompt, ""
            ),
            max_tokens=tokens.max_tokens,
            dtype=str(dtype).removeprefix("torch."),
            notes=(*_notes(shape, card, extractor.shares), *without_shares),
            shares=extractor.shares,
        )
        return cls(extractor, tokens, info, config)

    def embed(
        self,
        texts: Sequence[str],
        *,
        query: bool = False,
        on_batch: Callable[[int, int], None] | None = None,
        room: Room = in_memory,
        change: Change | None = None,
    ) -> Embedded:
        """Head vectors of ``texts``, in their order.

        ``query`` puts the query prompt before each instead of the document prompt. ``on_batch`` is told the documents
        and tokens of each batch when it is done. ``room`` says where the vectors of many layers are put. ``change`` is
        done to heads inside the forward pass (``without``).
        """
        encoded = self._tokens.encode(texts, self.info.query_prompt if query else self.info.prompt)
        lengths = [len(ids) for ids in encoded.ids]
        result = self._empty(len(texts), encoded.totals, lengths, room)
        arrivals = Arrivals(lambda batch, rows: self._keep(batch, rows, result))
        # A change hooks into blocks that may be compiled, and would not be seen there.
        faster = self._compiled.used() if self._compiled is not None and not change else nullcontext()
        with self._turn, ablated(self.extractor, change or {}), faster:
            for batch in batches(lengths, lambda: self._budget):
                self._embed_batch(batch, encoded.ids, arrivals)
                if on_batch is not None:
                    on_batch(len(batch), sum(lengths[index] for index in batch))
            arrivals.finish()
        _refuse_not_finite(result, self.info.dtype)
        return result

    def every_layer(self, shares: bool = False) -> Embedder:
        """The same loaded model, read at all its layers in one pass: stages 1 to 3 of each, and 4 with ``shares``.

        It is not to be used at the same time as this one: both hook into the same model.
        """
        layers = range(self.info.shape.layers)
        extractor = HeadExtractor(self.extractor.model, layers, self.info.pooling, blocks=True, shares=shares)
        info = replace(self.info, layers=tuple(layer + 1 for layer in layers), shares=shares)
        found = Embedder(extractor, self._tokens, info, self._config)
        if shares and info.pooling == "mean":  # until a pass ends, the outputs of all heads at all tokens are held
            found._budget = found._ledger_budget()
        return found

    def share_space(self, at: int = -1) -> ShareSpace:
        """What stage 4's coordinates mean; ``at`` indexes the layers that were asked for."""
        basis = self.extractor.stream.basis(self.info.layers[at] - 1)
        return ShareSpace(basis.directions.float().cpu().numpy(), basis.triangle.float().cpu().numpy())

    def check_exact(self) -> None:
        """Refuses a model whose embedding is not known to be a sum of terms; asked once per loaded model."""
        with self._turn:
            if not self._exact:
                check_exact(self.extractor)
                self._exact = True

    def ledgers(self, texts: Sequence[str], *, query: Sequence[bool] | bool = False) -> list[Ledger]:
        """Each text's embedding as a sum of terms, which ``core.model.ledger.explain`` compares.

        ``query`` says, for all texts or for each, whether the query prompt is put before it.
        """
        found = dict(self.each_ledger(texts, query=query))
        return [found[index] for index in range(len(texts))]

    def each_ledger(
        self, texts: Sequence[str], *, query: Sequence[bool] | bool = False
    ) -> Iterator[tuple[int, Ledger]]:
        """The same one by one, with the text's index and in no order: a ledger of a large model takes megabytes."""
        self.check_exact()
        asked = [query] * len(texts) if isinstance(query, bool) else query
        ids = [self._ids(text, is_query) for text, is_query in zip(texts, asked, strict=True)]
        for batch in batches([len(row) for row in ids], self._ledger_budget()):
            yield from self._ledgers_of(batch, ids)

    def _ledger_budget(self) -> int:
        """Tokens of a batch of ledgers: with mean pooling every token has two rows per layer in memory at once."""
        shape = self.info.shape
        return min(self._budget, _LEDGER_BYTES // (8 * shape.layers * shape.hidden))

    def _ledgers_of(self, batch: list[int], ids: list[list[int]]) -> Iterator[tuple[int, Ledger]]:
        """One batch; where memory does not suffice, its halves."""
        import torch

        try:
            with self._turn:
                found = ledgers(self.extractor, *self._padded(ids, batch))
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            if len(batch) == 1:
                raise self._too_long(len(ids[batch[0]])) from error
        else:
            yield from zip(batch, found, strict=True)
            return
        if self._device.type == "cuda":
            torch.cuda.empty_cache()
        half = len(batch) // 2
        yield from self._ledgers_of(batch[:half], ids)
        yield from self._ledgers_of(batch[half:], ids)

    def word_pairs(
        self, first: str, second: str, layer: int, head: int, *, query: Sequence[bool] = (False, False)
    ) -> WordPairs:
        """One head's value in the cosine of two texts, by the tokens it read; ``layer`` and ``head`` from 1.

        ``query`` says of each text whether the query prompt is put before it.
        """
        index = self.info.shape.layer_index(layer)
        check_head(head, self.info.shape.heads)
        self.check_exact()
        ids = [self._ids(text, is_query) for text, is_query in zip((first, second), query, strict=True)]
        with self._turn:
            shares = [source_shares(self.extractor, row, index) for row in ids]
            return word_pairs(self.extractor, shares[0], shares[1], index, head - 1)

    def pieces(self, text: str, *, query: bool = False) -> tuple[Piece, ...]:
        """The tokens of a text as the model sees them: what the numbers of ``word_pairs`` stand for."""
        return pieces_of(text, self._tokens.spans(text, self._prompt(query)))

    def _prompt(self, query: bool) -> str:
        return self.info.query_prompt if query else self.info.prompt

    def _ids(self, text: str, query: bool) -> list[int]:
        return self._tokens.encode([text], self._prompt(query)).ids[0]

    def without(self, heads: Heads, instead: Mapping[int, torch.Tensor] | None = None) -> Change:
        """The change that switches heads off: layer and head from 1; see ``core.model.ablation.without``."""
        return without([(layer - 1, head - 1) for layer, head in heads], self.info.shape, instead)

    def mean_outputs(self, texts: Sequence[str]) -> dict[int, torch.Tensor]:
        """Every layer's mean output of its heads over reference texts: what replaces heads that are switched off."""
        ids = self._tokens.encode(texts, self.info.prompt).ids
        with self._turn:
            groups = batches([len(row) for row in ids], self._budget)
            return mean_outputs(self.extractor, (self._padded(ids, batch) for batch in groups))

    def sweep(
        self, texts: Sequence[str], changes: Sequence[Change], *, query: bool = False
    ) -> Iterator[tuple[list[int], Swept]]:
        """Stage 3 under each of ``changes``, as it is computed: indices of texts, and the change's effect on them."""
        ids = self._tokens.encode(texts, self.info.query_prompt if query else self.info.prompt).ids
        for batch in batches([len(row) for row in ids], lambda: self._budget):
            yield from self._sweep_batch(batch, ids, changes, list(range(len(changes))))

    def _sweep_batch(
        self, batch: list[int], ids: list[list[int]], changes: Sequence[Change], left: list[int]
    ) -> Iterator[tuple[list[int], Swept]]:
        """One batch under ``changes[left]``; where memory does not suffice, fewer at once, and later no more."""
        import torch

        padded = self._padded(ids, batch)
        steps = sweep(self.extractor, *padded, [changes[index] for index in left], self._budget)
        done: set[int] = set()
        while True:
            try:
                with self._turn:
                    swept = next(steps, None)
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                if len(batch) == 1 and self._budget < 2 * padded[0].numel():
                    raise self._too_long(len(ids[batch[0]])) from error
                break
            if swept is None:
                return
            done.add(left[swept.change])
            yield batch, replace(swept, change=left[swept.change])
        if self._device.type == "cuda":
            torch.cuda.empty_cache()
        # A batch alone may fit where several changes of it side by side did not.
        self._budget = max(1, min(self._budget, 2 * padded[0].numel()) // 2)
        half = len(batch) // 2
        for some in (batch[:half], batch[half:]):
            if some:
                yield from self._sweep_batch(some, ids, changes, [index for index in left if index not in done])

    @property
    def tokens(self) -> Tokens:
        """The model's tokenizer, cut to its length: for chunks, and to say what was cut."""
        return self._tokens

    def attended(self, text: str) -> Attended:
        """Where every head looks in ``text``, from the pooled token, at the last of the layers that were asked for."""
        spans = self._tokens.spans(text, self.info.prompt)
        with self._turn:
            weights = attention(self.extractor, spans.ids, self.info.layers[-1] - 1)
        return Attended.of(text, spans, weights)

    def attention_matrix(self, text: str, layer: int, at_most: int | None = None) -> Matrix:
        """Where every head at ``layer`` (from 1) looks from every token; the model reads ``at_most`` tokens."""
        index = self.info.shape.layer_index(layer)
        spans = self._tokens.spans(text, self.info.prompt, at_most=at_most)
        with self._turn:
            weights = attention_matrix(self.extractor, spans.ids, index)
        return Matrix(pieces_of(text, spans), weights, spans.total)

    def read_attention(self, ids: Sequence[int], keep: Keep) -> None:
        """All layers' attention in one text's tokens, a layer at a time; see core/model/attention.py."""
        with self._turn:
            read_attention(self.extractor, ids, range(self.info.shape.layers), keep)

    def repeated_attention(self, seed: int, again: bool = True) -> np.ndarray:
        """One sequence of random tokens twice in a row; see core/model/induction.py."""
        with self._turn:
            return repeated_attention(self.extractor, self._tokens, sequences=1, seed=seed, again=again)

    def random_rows(self, length: int, sequences: int, seed: int) -> list[list[int]]:
        """Random ids of the model's vocabulary; see core/model/induction.py."""
        return random_rows(self.extractor, self._tokens, length, sequences, seed)

    def input_vectors(self, ids: Sequence[int]) -> np.ndarray:
        """``[token, hidden]`` in float32: the model's input embeddings of these tokens, without positions."""
        model: Any = self.extractor.model
        table = model.get_input_embeddings()
        rows: np.ndarray = table.weight.detach()[list(ids)].float().cpu().numpy()
        return rows

    def _embed_batch(self, batch: list[int], ids: list[list[int]], arrivals: Arrivals) -> None:
        """One batch; where memory does not suffice, its halves, and later batches are no larger."""
        import torch

        try:
            rows = self._forward([ids[index] for index in batch])
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            if len(batch) == 1:
                raise self._too_long(len(ids[batch[0]])) from error
        else:
            arrivals.send(batch, rows)
            return
        if self._device.type == "cuda":
            torch.cuda.empty_cache()
        half = len(batch) // 2
        self._budget = max(1, half * len(ids[batch[0]]))
        self._embed_batch(batch[:half], ids, arrivals)
        self._embed_batch(batch[half:], ids, arrivals)

    def _forward(self, ids: list[list[int]]) -> Rows:
        """Starts a batch; on a GPU it is computed while this goes on, so that nothing here may wait for it."""
        if self._config.packed:
            return self.extractor.packed(ids)
        padded, mask = (pinned(tensor, self._device) for tensor in pad(ids, self._tokens.pad, self._padding))
        return self.extractor(padded.to(self._device, non_blocking=True), mask)

    def _too_long(self, tokens: int) -> Mistake:
        return Mistake(
            f"A document of {tokens} tokens does not fit into the memory of {self._device}. "
            "Give a smaller --max-tokens, or --device cpu."
        )

    def _padded(self, ids: list[list[int]], batch: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
        padded, mask = pad([ids[index] for index in batch], self._tokens.pad, self._padding)
        return padded.to(self._device), mask.to(self._device)

    def _keep(self, batch: list[int], rows: Rows, result: Embedded) -> None:
        assert rows.output is not None
        for position, layer in enumerate(self.info.layers):
            result.attention[position, batch] = rows.attention[layer - 1].numpy()
            result.projected[position, batch] = rows.projected[layer - 1].numpy()
            if result.outputs is not None:
                result.outputs[position, batch] = rows.blocks.get(layer - 1, rows.output).numpy()
            if result.shares is not None:
                result.shares[position, batch] = rows.shares[layer - 1].numpy()
        result.output[batch] = rows.output.numpy()

    def _empty(self, count: int, totals: list[int], lengths: list[int], room: Room) -> Embedded:
        shape, layers = self.info.shape, len(self.info.layers)
        tokens = np.asarray(totals, dtype=np.int32)
        return Embedded(
            attention=room("attention", (layers, count, shape.width(1))),
            projected=room("projected", (layers, count, shape.width(2))),
            output=in_memory("output", (count, shape.width(3))),
            tokens=tokens,
            truncated=tokens > np.asarray(lengths, dtype=np.int32),
            outputs=room("outputs", (layers, count, shape.width(3))) if self.extractor.blocks else None,
            shares=room("shares", (layers, count, shape.width(4))) if self.extractor.shares else None,
        )


def _load(
    folder: Path, name: str, device: torch.device, dtype: torch.dtype, trusted: bool, untrained: Untrained | None
) -> tuple[Any, Any]:
    import torch
    from transformers import AutoConfig, AutoModel, AutoTokenizer

    try:
        if not trusted:  # whoever runs a model's own code believes its configuration, too
            check_sizes(folder, name)
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=trusted)
        if untrained is None:
            model = AutoModel.from_pretrained(folder, dtype=dtype, trust_remote_code=trusted)
        else:
            config = AutoConfig.from_pretrained(folder, trust_remote_code=trusted)
            with torch.device("meta"):
                laid_out = AutoModel.from_config(config, trust_remote_code=trusted)
            untrained.check(sum(parameter.numel() for parameter in laid_out.parameters()), device.type)
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(untrained.seed)
                model = AutoModel.from_config(config, dtype=dtype, trust_remote_code=trusted)
        return model.to(device).eval(), tokenizer
    except Mistake:
        raise
    except Exception as error:
        if is_out_of_memory(error):
            raise Mistake(f"The model '{name}' does not fit into the memory of {device}. Try --device cpu.") from error
        reason = (str(error).strip() or type(error).__name__).splitlines()[0][:300].replace(str(folder), name)
        raise Mistake(
            f"The model '{name}' could not be loaded ({reason}). Check its files; a model that brings its own code "
            f"needs --trust-remote-code {name}."
        ) from error


def _prepare_shares(extractor: HeadExtractor, wanted: bool | None) -> tuple[str, ...]:
    """Has stage 4 read where it is wanted; returns a note where the model has none and it was not insisted on."""
    if wanted is False:
        return ()
    try:
        check_exact(extractor)
        extractor.shares = True
    except Mistake as mistake:
        if wanted:
            raise
        return (f"{NO_SHARES} {mistake}",)
    return ()


def _notes(shape: ModelShape, card: ModelCard, shares: bool) -> tuple[str, ...]:
    notes = []
    if len(shape.stages) < 3:
        notes.append(
            f"Stages 2 and 3 are left out: the hidden size {shape.hidden} is not divisible by {shape.heads} heads."
        )
    if card.later_modules:
        modules = ", ".join(card.later_modules)
        notes.append(f"Stage 3 is the model's output before sentence-transformers' {modules}.")
        if shares:
            notes.append(f"Stage 4, like stage 3, stops before {modules}: shares are of that output.")
    return tuple(notes)


def _refuse_not_finite(result: Embedded, dtype: str) -> None:
    outputs = result.output[None] if result.outputs is None else result.outputs
    shares = () if result.shares is None else (result.shares,)
    for stage, vectors in enumerate((result.attention, result.projected, outputs, *shares), start=1):
        for layer in vectors:  # [doc, width]: one at a time, for all of them may not fit into memory
            bad = np.flatnonzero(~np.isfinite(layer).all(axis=1))
            if not len(bad):
                continue
            raise Mistake(
                f"Document {bad[0] + 1} of this part gives numbers that are not finite at stage {stage} with "
                f"precision {dtype}. Try --dtype float32."
            )


def _first(*values: str | None) -> str:
    return next(value for value in values if value is not None)
