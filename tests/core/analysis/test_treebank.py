"""The project's treebank, arc by arc, and the reader of CoNLL-U files."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from core.analysis.conllu import OWN, Sentence, read_treebank
from core.analysis.treebank import (
    RELATIONS,
    OffsetBaseline,
    Pairs,
    best_offset,
    choosing_half,
    offset_baseline,
    pairs,
)
from core.errors import Mistake

LEAST = {
    "subject → verb": 400,
    "object → verb": 350,
    "determiner → noun": 700,
    "adjective → noun": 400,
    "preposition → its object": 200,
    "auxiliary → verb": 200,
    "possessive → noun": 120,
    "pronoun → antecedent": 150,
}
HIGHEST_OFFSET_SHARE = 0.6
DEPRELS = {
    "acl", "acl:relcl", "advcl", "advmod", "amod", "appos", "aux", "aux:pass", "case", "cc", "cc:preconj", "ccomp",
    "compound", "compound:prt", "conj", "cop", "csubj", "det", "det:predet", "discourse", "expl", "fixed", "iobj",
    "mark", "nmod", "nmod:poss", "nsubj", "nsubj:pass", "nummod", "obj", "obl", "obl:agent", "punct", "root",
    "xcomp",
}  # fmt: skip
DETERMINERS = {
    "a", "an", "the", "this", "that", "these", "those", "some", "every", "each", "no", "any", "another", "either",
    "both", "which", "such",
}  # fmt: skip
AUXILIARIES = {
    "is", "are", "was", "were", "be", "been", "being", "has", "have", "had", "having", "do", "does", "did", "will",
    "would", "can", "cannot", "could", "should", "may", "might", "must",
}  # fmt: skip
PRONOUNS = {
    "he": "him", "him": "him", "his": "him", "himself": "him", "she": "her", "her": "her", "herself": "her",
    "it": "it", "its": "it", "itself": "it", "they": "them", "them": "them", "their": "them",
}  # fmt: skip


@pytest.fixture(scope="module")
def sentences() -> list[Sentence]:
    return read_treebank()


@pytest.fixture(scope="module")
def rows() -> list[list[list[str]]]:
    """By sentence and word, the ten columns, read without the product's reader."""
    blocks = OWN.read_text(encoding="utf-8").strip().split("\n\n")
    return [[line.split("\t") for line in block.split("\n") if not line.startswith("#")] for block in blocks]


def written(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "own.conllu"
    path.write_text("\n".join(line.replace(" ", "\t") if not line.startswith("#") else line for line in lines) + "\n")
    return path


def test_every_sentence_is_one_tree_of_known_arcs(rows: list[list[list[str]]]) -> None:
    for words in rows:
        assert [word[0] for word in words] == [str(number) for number in range(1, len(words) + 1)]
        heads = {int(word[0]): int(word[6]) for word in words}
        assert [word[7] for word in words if word[6] == "0"] == ["root"]
        assert {word[7] for word in words} <= DEPRELS
        for number in heads:
            path = [number]
            while heads[path[-1]]:
                path.append(heads[path[-1]])
                assert len(path) <= len(words), f"cycle in {words}"


def test_arcs_join_words_that_they_may_join(rows: list[list[list[str]]]) -> None:
    wrong = []
    for words in rows:
        for word in words:
            head = words[int(word[6]) - 1] if word[6] != "0" else None
            form, deprel = word[1].lower(), word[7]
            nominal = head is not None and head[3] in ("NOUN", "PROPN", "PRON")
            fits = {
                "det": form in DETERMINERS and nominal,
                "amod": word[3] == "ADJ" and nominal and int(word[0]) < int(word[6]),
                "case": (word[3] == "ADP") == (form != "'s") and nominal,
                "aux": form in AUXILIARIES and head is not None and int(word[0]) < int(word[6]),
                "aux:pass": form in AUXILIARIES and any(
                    other[7] == "nsubj:pass" and other[6] == word[6] for other in words
                ),
                "nmod:poss": nominal and int(word[0]) < int(word[6]),
                "nsubj": word[3] in ("NOUN", "PROPN", "PRON"),
                "nsubj:pass": word[3] in ("NOUN", "PROPN", "PRON"),
                "obj": word[3] in ("NOUN", "PROPN", "PRON") and head is not None and head[3] == "VERB",
                "nmod": nominal,
                "acl:relcl": nominal,
            }  # fmt: skip
            if not fits.get(deprel, True):
                wrong.append((word[1], deprel, head and head[1]))
    assert wrong == []


def test_a_verb_has_one_subject_and_one_object_at_most(rows: list[list[list[str]]]) -> None:
    for words in rows:
        core = Counter((word[7].split(":")[0], word[6]) for word in words if word[7].split(":")[0] in ("nsubj", "obj"))
        assert max(core.values(), default=1) == 1


def test_the_text_is_what_the_comment_says(sentences: list[Sentence]) -> None:
    texts = [line[9:] for line in OWN.read_text(encoding="utf-8").splitlines() if line.startswith("# text = ")]
    assert [sentence.text for sentence in sentences] == texts
    assert len(set(texts)) == len(texts)
    for sentence in sentences:
        assert [sentence.text[start:end] for start, end in sentence.spans] == [word.form for word in sentence.words]


def test_there_are_enough_sentences_of_many_lengths(sentences: list[Sentence]) -> None:
    lengths = [sum(word.deprel != "punct" for word in sentence.words) for sentence in sentences]
    assert len(sentences) >= 280
    assert (min(lengths), max(lengths)) == (5, 35)
    assert len(set(lengths)) >= 20


def test_pronouns_agree_with_their_antecedents_and_half_have_a_distractor(sentences: list[Sentence]) -> None:
    found = [word for sentence in sentences for word in sentence.words if word.antecedent is not None]
    assert {word.form.lower() for word in found} <= set(PRONOUNS)
    assert sum(word.distractor is not None for word in found) * 2 >= len(found)
    assert all(word.distractor != word.antecedent for word in found)
    gender: dict[tuple[int, int], set[str]] = {}
    for number, sentence in enumerate(sentences):
        for word in sentence.words:
            if word.antecedent is not None:
                gender.setdefault((number, word.antecedent), set()).add(PRONOUNS[word.form.lower()])
    assert all(len(kinds) == 1 for kinds in gender.values())


@pytest.mark.parametrize("relation", RELATIONS)
def test_no_fixed_offset_solves_a_relation(relation: str, sentences: list[Sentence]) -> None:
    found = pairs(sentences, relation)
    assert len(found) >= LEAST[relation]
    assert (found.offset == best_offset(found)).mean() <= HIGHEST_OFFSET_SHARE


def test_relations_follow_the_rules(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "# My cat's paw was wet, and it had licked it.",
        "1 My _ _ _ _ 2 nmod:poss _ _",
        "2 cat _ _ _ _ 4 nmod:poss _ SpaceAfter=No",
        "3 's _ _ _ _ 2 case _ _",
        "4 paw _ _ _ _ 6 nsubj _ _",
        "5 was _ _ _ _ 6 cop _ _",
        "6 wet _ _ _ _ 0 root _ _",
        "7 and _ _ _ _ 10 cc _ _",
        "8 it _ _ _ _ 10 nsubj _ Antecedent=2",
        "9 had _ _ _ _ 10 aux _ _",
        "10 licked _ _ _ _ 6 conj _ _",
        "11 it _ _ _ _ 10 obj _ Antecedent=4|Distractor=2",
    )
    sentences = read_treebank(path)
    found = {
        name: [(int(a), int(b)) for a, b in zip(pairs(sentences, name).start, pairs(sentences, name).end, strict=True)]
        for name in RELATIONS
    }
    assert found == {
        "subject → verb": [(7, 9)],  # not paw → wet, which is no verb
        "object → verb": [(10, 9)],
        "determiner → noun": [],
        "adjective → noun": [],
        "preposition → its object": [],  # 's is none
        "auxiliary → verb": [(8, 9)],
        "possessive → noun": [(0, 1), (1, 3)],
        "pronoun → antecedent": [(7, 1), (10, 3)],
    }
    assert sentences[0].text == "My cat's paw was wet and it had licked it"


def test_multiword_tokens_and_empty_nodes_are_skipped(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "",
        "1-2 Don't _ _ _ _ _ _ _ SpaceAfter=No",
        "1 Do _ _ _ _ 3 aux _ _",
        "2 n't _ _ _ _ 3 advmod _ _",
        "3 – _ _ _ _ 0 root _ _",
        "3.1 home _ _ _ _ _ _ _ _",
        "4-5 zum _ _ _ _ _ _ _ _",
        "4 zu _ _ _ _ 5 case _ _",
        "5 dem _ _ _ _ 3 obl _ _",
    )
    (sentence,) = read_treebank(path)
    assert [word.form for word in sentence.words] == ["Do", "n't", "–", "zu", "dem"]
    assert sentence.text == "Don't– zu dem"
    assert sentence.line == 2


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (["1 Go _ _ _ _ 0 root _"], "Line 1 of the treebank 'own.conllu' has 9 columns instead of 10"),
        (["# x", "2 Go _ _ _ _ 0 root _ _"], "Line 2 of the treebank 'own.conllu' has the word number '2' where 1"),
        (["1 Go _ _ _ _ _ root _ _"], "Line 1 of the treebank 'own.conllu' has '_' as HEAD"),
        (["1 Go _ _ _ _ 2 root _ _"], "Line 1 of the treebank 'own.conllu' points to word 2"),
        (["1 Go _ _ _ _ 1 root _ _"], "Line 1 of the treebank 'own.conllu' points to word 1"),
        (["1 It _ _ _ _ 0 root _ Antecedent=7"], "Line 1 of the treebank 'own.conllu' points to word 7"),
        (["1 It _ _ _ _ 0 root _ Antecedent=x"], "Line 1 of the treebank 'own.conllu' has 'x' as antecedent"),
        (["1-2 Zum _ _ _ _ _ _ _ _"], "Line 1 of the treebank 'own.conllu' begins a sentence without words"),
        (["# only a comment"], "The treebank 'own.conllu' has no sentences"),
    ],
)
def test_a_mistake_in_a_file_is_named_with_its_line(lines: list[str], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(Mistake) as caught:
        read_treebank(written(tmp_path, *lines))
    assert str(caught.value).startswith(sentence)


def test_a_file_that_is_missing_or_not_text_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match=r"'none\.conllu' could not be read"):
        read_treebank(tmp_path / "none.conllu")
    (tmp_path / "bytes.conllu").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(Mistake, match=r"'bytes\.conllu' could not be read"):
        read_treebank(tmp_path / "bytes.conllu")


def test_the_best_offset_is_the_commonest_and_then_the_nearest() -> None:
    zeros = np.zeros(5, dtype=np.int64)
    assert best_offset(Pairs(zeros, zeros, np.array([3, 3, 1, -2, 3]))) == 3
    assert best_offset(Pairs(zeros, zeros, np.array([3, 3, -2, -2, 9]))) == -2
    assert best_offset(Pairs(zeros, zeros, np.array([3, 3, -2, -2, 9])).reversed) == 2


def test_an_offset_is_chosen_on_one_half_and_reported_on_the_other() -> None:
    found = Pairs(np.arange(7), np.zeros(7, dtype=np.int64), np.array([1, 1, 1, 2, 1, 2, 2]))
    choosing = np.array([True] * 4 + [False] * 3)
    assert offset_baseline(found, choosing) == OffsetBaseline(1, 3 / 4, 1 / 3)


def test_half_of_the_sentences_are_for_choosing() -> None:
    assert choosing_half(9).sum() == 4
    assert np.array_equal(choosing_half(9), choosing_half(9))
    assert not np.array_equal(choosing_half(50, seed=1), choosing_half(50, seed=2))


def test_the_documented_counts_are_those_of_the_file(sentences: list[Sentence]) -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "head-types.md").read_text(encoding="utf-8")
    for relation in RELATIONS:
        found = pairs(sentences, relation)
        offset = best_offset(found)
        share = round(100 * float((found.offset == offset).mean()))
        assert f"| {relation} | {len(found)} | {offset:+d} | {share} % |".replace("-", "−") in page
    words = [word for sentence in sentences for word in sentence.words]
    assert f"{len(sentences)} English sentences ({len(words):,} words" in page
    pronouns = [word for word in words if word.antecedent is not None]
    assert f"{sum(word.distractor is not None for word in pronouns)} of the {len(pronouns)} also have" in page
