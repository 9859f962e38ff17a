"""Words with a meaning of their own, explained where they are used: the texts of tooltips."""

from __future__ import annotations

from core.analysis.false_alarms import ABOUT_HEADS, COUNTED, CUT, DEPTH, PEAK, PRUNED, ROLE, SPECIALISE, TYPE, fires

TERMS: dict[str, str] = {
    "stage": "Where the heads are read: 1 before they are mixed, 2 after, 3 the model's own embedding, 4 what each "
    "head adds to that embedding.",
    "probe": "A simple classifier (logistic regression) that has to tell the head from a vector it has not seen. "
    "If it can, heads occupy regions of their own.",
    "by sample": "The study's way: vectors are split at random, so that a document's other heads may be in the "
    "training set.",
    "by document": "Stricter: every document is wholly in the training set or wholly in the test set.",
    "random slices": "The control: the same dimensions in random order, cut into as many slices as there are heads, "
    "200 times. A head stands out where it lies beyond these slices; what they show as well is no finding about heads.",
    "untrained model": "A second control: the same architecture with random weights. What it shows as well was not "
    "learned.",
    "chance": "What guessing would reach.",
    "interval": "95 % interval: documents were drawn again a thousand times.",
    "CKA": "How alike two heads are: 1 if one is the other turned or stretched, about 0 if they have nothing in common "
    "(linear centred kernel alignment, debiased).",
    "key/value group": "In grouped-query attention several heads share one key/value head; they form a group.",
    "activation": "The length of a head's vector before it is normalised: how large the head's output is.",
    "similarity": "Cosine of the document and its topic's name within one head: 1 the same direction, 0 unrelated.",
    "examples": "A topic's labelled documents: their mean within a head, the document itself left out.",
    "selectivity": "How much of a head's variation the topics explain, less what chance would: 0 nothing, 1 all. Each "
    "topic's mean similarity to all documents is subtracted first.",
    "alignment": "Does the head order a topic's documents as the full embedding does? Rank correlation, 1 the same.",
    "sparsity": "How much of the variation single documents carry: the share of the 2 % that stand out most.",
    "AUC": "The chance that a document of the topic scores higher than one of another topic: 0.5 is a coin toss.",
    "topic match": "Is the labelled topic the nearest of all topic names?",
    "kappa": "Cohen's kappa: how far two labellings agree beyond what they would by chance. 1 always, 0 as by chance, "
    "below 0 less than that.",
    "circular": "Labels that the embedding itself made cannot test it: measured by them, it looks better than it is.",
    "zero-shot": "Each document gets the topic whose name the model embeds nearest to it; nobody has read it.",
    "full embedding": "All heads side by side, normalised; at stage 4 the sum of the heads' shares.",
    "percentile": "How many of 100 documents of the corpus are less similar to the topic in this head: 50 is ordinary, "
    "100 is nearer than all. A head that is near to every topic has high cosines, but ordinary percentiles.",
    "vote": "Each head votes for one topic: the nearest one, or by names the one for which the document stands out "
    "most. For documents: its nearest one gets the head's whole weight, the next half of it, and so on.",
    "consensus": "What the full embedding says, and which share of the heads' weighted votes says the same.",
    "examples or names": "A document is compared with the mean of each topic's labelled documents in a head, around "
    "the corpus mean, or with the topic's name as in the study. In one head a name is mostly noise.",
    "reliability": "For how many of 100 labelled documents of the corpus the head's nearest topic is the right one. "
    "Votes are weighted by it, above chance; a head at chance or below has no vote.",
    "layer": "One of the blocks that a text goes through, one after the other: attention, then a network that works on "
    "each token by itself.",
    "attention": "How a head divides its look from one token over all tokens that it may see: shares that add up to 1.",
    "attention type": "What a head looks at, by written rules on its figures over a sample of documents and in "
    "experiments; mixed where none holds. Where several hold, the strongest is its colour. With random weights every "
    "head is ‘broad’. Of the other types: " + fires(TYPE, *(name for name in COUNTED[TYPE].rates if name != "broad")),
    "relation": "How often the word that a head attends to most is the right one, as in a sentence's gold relations: "
    "from a subject to its verb, for example. A word is all of its pieces; special tokens are left out.",
    "fixed offset": "The baseline: attending always to the word so many places away. The best offset is chosen on one "
    "half of the sentences, and both are compared on the other.",
    "shuffled sentences": "The baseline: the same head in the same sentences with their words in a random order.",
    "induction": "Random tokens twice in a row: from a token seen again, attention to the token after its first "
    "occurrence. A duplicate-token head attends to the first occurrence itself.",
    "semantic similarity": "Whether attention between words follows the cosine of their input embeddings, less what "
    "distance and the words by themselves explain. The baseline has the words of a sentence exchanged.",
    "shuffled": "The baseline: what the same shares give if they fall on any of the tokens that may be seen. A causal "
    "model sees only what came before.",
    "sink": "The text's first token, on which many heads rest in texts that give them nothing to do. In other texts "
    "they may do something: induction heads rest until something is repeated.",
    "delimiters": "Special tokens such as [CLS] and [SEP], punctuation and line breaks.",
    "rare tokens": "The rarest tokens of the sampled documents, together at most a quarter of them; never delimiters "
    "or a text's first token.",
    "entropy": "How evenly a head divides its attention, as a share of what is possible: 0 all on one token, 1 all "
    "alike. In whatever order, it is the same.",
    "aspect": "A label axis of the corpus: topic, genre, language, length, or any column with few values.",
    "Cramér's V": "How far one aspect decides the other in this corpus: 0 not at all, 1 wholly; corrected for small "
    "samples.",
    "ablation": "A head's output is replaced inside the model, before anything later reads it, and the texts, topic "
    "names and queries are embedded again.",
    "random removals": "The noise floor: as much as a head's output is removed from the same layer in a random "
    "direction, several times. A head matters where its removal changes more.",
    "beyond the noise": "Outside all random removals at its layer, p at most 5 % after Benjamini–Hochberg over all "
    "heads, and a 95 % interval on the same side.",
    "share": "What a head, a feed-forward block, the embeddings or biases add to the model's embedding, exactly: with "
    "the norms' statistics of the text taken as given, the embedding is the sum of these.",
    "why similar": "The embedding is a sum over heads, feed-forward blocks, embeddings and biases, and so is the "
    "cosine of two embeddings. What two terms have in common is split evenly between them.",
    "random pairs": "The baseline: the same sum, averaged over random pairs of documents. What it has too is common to "
    "all pairs, and not a reason why these two are similar.",
    "why words": "A head adds up what it reads from the words of a text, so its part of the cosine is a sum over "
    "words, exactly.",
    "role": "What a head does, by written rules on its figures and only beyond random slices. Of all roles: "
    + fires(ROLE),
    "specialising": "At a layer, heads differ more among themselves than random slices do, corrected over layers; "
    "said only where the full embedding finds topics at some layer. " + fires(DEPTH, SPECIALISE),
    "peak": "The layer at which the full embedding finds most topics, where that is clearly more than guessing. "
    + fires(DEPTH, PEAK),
    "pruned set": "The fewest heads within one standard error of the best, chosen on one half of the queries. "
    + fires(PRUNED, CUT)
    + " A cut is about heads only if equally many numbers chosen without heads do worse. "
    + fires(PRUNED, ABOUT_HEADS),
}


def why_rule(kind: str, rule: str | None) -> str:
    """The tooltip of a role or an attention type: what such names are, and how often this one is given wrongly."""
    said = fires(kind, rule) if rule else ""
    return why(kind) + (f"  \n**{rule}** – {said}" if said else "")


def why(*terms: str) -> str:
    """A tooltip that explains some terms."""
    return "  \n".join(f"**{term}** – {TERMS[term]}" for term in terms)
