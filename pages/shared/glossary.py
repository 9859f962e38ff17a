"""Words with a meaning of their own, explained where they are used: the texts of tooltips."""

from __future__ import annotations

from core.analysis.false_alarms import ABOUT_HEADS, COUNTED, CUT, DEPTH, PEAK, PRUNED, ROLE, SPECIALISE, TYPE, fires

TERMS: dict[str, str] = {
    "stage": "Where the heads are read: 1 before they are mixed, 2 after, 3 the model's own embedding, 4 what each "
    "head adds to that embedding.",
    "probe": "A simple classifier (logistic regression) that has to tell the head from a vector it has not seen. "
    "If it can, heads occupy regions of their own.",
    "by sample": "The study's method: vectors are split at random, so other heads of the same document may be in the "
    "training set.",
    "by document": "Stricter: each document is entirely in the training set or entirely in the test set.",
    "random slices": "The control: the same dimensions in random order, cut into as many slices as there are heads, "
    "200 times. A head stands out if it lies beyond these slices. What random slices show too is not a finding about "
    "heads.",
    "untrained model": "A second control: the same architecture with random weights. What it shows too was not "
    "learned.",
    "chance": "What guessing would reach.",
    "interval": "95 % confidence interval: documents were resampled a thousand times.",
    "CKA": "How alike two heads are: 1 if one is a rotated or scaled copy of the other, about 0 if they have nothing "
    "in common "
    "(linear centred kernel alignment, debiased).",
    "key/value group": "In grouped-query attention several heads share one key/value head; they form a group.",
    "activation": "The length of a head's vector before it is normalised: how large the head's output is.",
    "similarity": "Cosine of the document and its topic's name within one head: 1 the same direction, 0 unrelated.",
    "examples": "The mean of a topic's labelled documents within a head, leaving out the document itself.",
    "selectivity": "How much of a head's variation the topics explain, beyond chance: 0 none, 1 all of it. Each "
    "topic's mean similarity to all documents is subtracted first.",
    "alignment": "Does the head rank a topic's documents as the full embedding does? Rank correlation; 1 is the same "
    "order.",
    "sparsity": "How much of the variation is due to single documents: the share of the 2 % that stand out most.",
    "AUC": "The chance that a document of the topic scores higher than one of another topic: 0.5 is a coin toss.",
    "topic match": "Is the labelled topic the nearest of all topic names?",
    "kappa": "Cohen's kappa: how far two labellings agree beyond chance. 1 is perfect agreement, 0 is chance, below "
    "0 is worse than chance.",
    "circular": "Labels made by the embedding itself cannot test it: measured against them, it looks better than it "
    "is.",
    "zero-shot": "Each document gets the topic whose name the model embeds nearest to it; nobody has read it.",
    "full embedding": "All heads side by side, normalised; at stage 4 the sum of the heads' shares.",
    "percentile": "How many of 100 corpus documents are less similar to the topic in this head: 50 is typical, 100 "
    "is nearer than all. A head that is near every topic has high cosines but ordinary percentiles.",
    "vote": "Each head votes for one topic: the nearest one, or by names the one for which the document stands out "
    "most. For documents: its nearest one gets the head's whole weight, the next half of it, and so on.",
    "consensus": "What the full embedding says, and the share of the heads' weighted votes that agree with it.",
    "examples or names": "A document is compared with the mean of each topic's labelled documents in a head, around "
    "the corpus mean, or with the topic's name as in the study. In one head a name is mostly noise.",
    "reliability": "For how many of 100 labelled documents of the corpus the head's nearest topic is the right one. "
    "Votes are weighted by how far this exceeds chance; a head at or below chance has no vote.",
    "layer": "One of the blocks that a text passes through in sequence: attention, then a network that processes "
    "each token separately.",
    "attention": "How a head distributes its attention from one token over all tokens it can see: shares that add up "
    "to 1.",
    "attention type": "What a head attends to, by fixed rules on its figures over a sample of documents and in "
    "experiments; mixed if no rule applies. If several apply, the strongest sets its colour. With random weights every "
    "head is ‘broad’. Of the other types: " + fires(TYPE, *(name for name in COUNTED[TYPE].rates if name != "broad")),
    "relation": "How often the word that a head attends to most is correct by the treebank's annotation: from a "
    "subject to its verb, for example. A word includes all of its tokens; special tokens are ignored.",
    "fixed offset": "The baseline: always attending to the word a fixed number of places away. The best offset is "
    "chosen on one half of the sentences, and both are compared on the other.",
    "shuffled sentences": "The baseline: the same head in the same sentences with their words in a random order.",
    "induction": "A random sequence, repeated once: attention from a repeated token to the token after its first "
    "occurrence. A duplicate-token head attends to the first occurrence itself.",
    "semantic similarity": "Whether attention between words follows the cosine of their input embeddings, beyond "
    "what distance and the single words explain. The baseline swaps the words of a sentence.",
    "shuffled": "The baseline: what the same shares give if they fall on any visible token at random. A causal model "
    "sees only earlier tokens.",
    "sink": "The text's first token, a resting place for many heads that are idle in a text. They may be active in "
    "other texts: induction heads rest until something is repeated.",
    "delimiters": "Special tokens such as [CLS] and [SEP], punctuation and line breaks.",
    "rare tokens": "The rarest tokens of the sampled documents, together at most a quarter of them; never delimiters "
    "or a text's first token.",
    "entropy": "How evenly a head spreads its attention, relative to the maximum: 0 all on one token, 1 equally on "
    "all. The order of the tokens does not matter.",
    "aspect": "A label axis of the corpus: topic, genre, language, length, or any column with few values.",
    "Cramér's V": "How strongly one aspect determines the other in this corpus: 0 not at all, 1 completely; "
    "corrected for small "
    "samples.",
    "ablation": "A head's output is replaced inside the model, before anything later reads it, and the texts, topic "
    "names and queries are embedded again.",
    "random removals": "The noise floor: a random direction of the same size as a head's output is removed from the "
    "same layer, several times. A head matters if its removal changes more.",
    "beyond the noise": "Outside all random removals at its layer, p at most 5 % after Benjamini–Hochberg over all "
    "heads, and a 95 % interval on the same side.",
    "share": "What a head, a feed-forward block, the embeddings or biases add to the model's embedding, exactly: "
    "with the norms' statistics of the text held fixed, the embedding is the sum of these.",
    "why similar": "The embedding is a sum over heads, feed-forward blocks, embeddings and biases, and so is the "
    "cosine of two embeddings. What two terms have in common is split evenly between them.",
    "random pairs": "The baseline: the same sum, averaged over random pairs of documents. What it contains too is "
    "common to all pairs, so it does not explain why these two are similar.",
    "why words": "A head adds up what it reads from the words of a text, so its part of the cosine is a sum over "
    "words, exactly.",
    "role": "What a head does, by fixed rules on its figures and only beyond random slices. Of all roles: "
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
