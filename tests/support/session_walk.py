"""How a reader walks through the app: a step is a page, a change on it, or a document of the reader's own.

Every reader has a word that nobody else has. It stands in what the reader looks for and in the document that the reader
pastes, so that whoever is sent another one's search or document can be told by it.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tests.support.session_client import SessionClient

_SENTENCES = (
    "The night ferry left the harbour an hour late, because the wind had turned.",
    "Of four thousand volunteers in eleven villages only nine fell ill after the second dose.",
    "The council and the union had met again, and nobody watched the last minutes of the match.",
    "A violin from the museum was played in the orchard when the glacier gave way.",
    "The verdict named the satellite's maker and left the price of the enzyme open.",
)


def words_for(count: int) -> list[str]:
    """Words that stand in no document, each of them nobody else's."""
    chance = random.Random(11)
    return ["zq" + "".join(chance.choices("bcdfghjklmnpqrstvwx", k=12)) for _ in range(count)]


@dataclass(frozen=True)
class Walker:
    """A reader on its way: its own word, its own chance, and the run that it looks at."""

    reader: SessionClient
    word: str
    chance: random.Random
    run: str

    async def turn(self, page: str, **query: object) -> None:
        await self.reader.show(page, run=self.run, **query)

    async def pick(self, label: str, among: tuple[str, ...] | None = None) -> None:
        """Another option of a widget, if the page has such a widget and it has several."""
        options = among or self.reader.widget(label).options
        if options:
            await self.reader.choose(label, self.chance.choice(options))

    def document(self) -> str:
        """A text that no other walker has."""
        sentences = self.chance.sample(_SENTENCES, 3)
        return f"{' '.join(sentences)} The parcel was addressed to {self.word} and to nobody else."


async def overview(walker: Walker) -> None:
    await walker.turn("", doc=walker.chance.randint(1, 300))
    await walker.pick("Stage")
    await walker.pick("Head")


async def find(walker: Walker) -> None:
    await walker.turn("")
    await walker.reader.choose("Find a document", walker.word)


async def head_map(walker: Walker) -> None:
    await walker.turn("head_map", stage=walker.chance.randint(1, 3))
    await walker.pick("Stage")
    await walker.reader.choose("Highlight documents", f"harbour {walker.word}")


async def heat_map(walker: Walker) -> None:
    await walker.turn("heat_map")
    await walker.pick("Stage")
    topics = walker.reader.widget("Topics").options
    chosen = walker.chance.sample(topics, min(3, len(topics)))
    if chosen:
        await walker.reader.choose("Topics", chosen)
    await walker.pick("Order within a topic")
    await walker.turn("heat_map", doc=walker.chance.randint(1, 300), head=walker.chance.randint(0, 9))


async def head_profile(walker: Walker) -> None:
    await walker.turn("head_profile", head=walker.chance.randint(1, 9), stage=walker.chance.randint(1, 3))
    await walker.pick("Head")
    await walker.reader.choose("Next", True)
    await walker.turn("head_profile", view="gallery")


async def stages(walker: Walker) -> None:
    await walker.turn("stages", doc=walker.chance.randint(1, 300))
    await walker.pick("Split")


async def topics(walker: Walker) -> None:
    await walker.turn("topics", stage=walker.chance.randint(1, 3), tab="heads")
    await walker.pick("Topic")
    await walker.turn("topics", stage=walker.chance.randint(1, 3), tab="disagreements")
    await walker.pick("Stage")
    await walker.pick("Label")


async def depth(walker: Walker) -> None:
    """What a run has of them, or how it would be made."""
    await walker.turn("aspects")
    await walker.turn("layers")
    await walker.turn("attention")
    await walker.turn("ablation")


async def retrieval_lab(walker: Walker) -> None:
    await walker.turn("retrieval_lab", query=walker.chance.randint(1, 20), stage=walker.chance.randint(1, 3))
    await walker.turn("retrieval_lab", mix=f"1-{walker.chance.randint(2, 9)}")


async def blank_document(walker: Walker) -> None:
    await walker.turn("your_document")


async def own_document(walker: Walker) -> None:
    """Pasted, embedded, and looked at in a head and a stage of its own choice."""
    await walker.turn("your_document")
    await walker.reader.choose("Paste a text", walker.document())
    await walker.reader.choose("Embed", True)
    await walker.reader.settle()
    if walker.word.encode() not in walker.reader.text:
        walker.reader.seen.errors.append("a reader's own document is not shown")
    await walker.pick("Stage")
    await walker.reader.settle()


Step = Callable[[Walker], Awaitable[None]]
PAGES: dict[str, Step] = {
    "overview": overview,
    "find a document": find,
    "head map": head_map,
    "topic heat map": heat_map,
    "head profile": head_profile,
    "stages": stages,
    "topics": topics,
    "layers, attention": depth,
    "retrieval lab": retrieval_lab,
}
WITHOUT_MODEL: dict[str, Step] = PAGES | {"your document, blank": blank_document}
DOCUMENT = "your document"
WITH_MODEL: dict[str, Step] = PAGES | {DOCUMENT: own_document}


async def tour(walker: Walker) -> None:
    """One reader who sees everything: all pages at all stages, so that all that the app keeps is kept."""
    for stage in (1, 2, 3):
        for page in walker.reader.pages:
            await walker.turn(page, stage=stage, doc=stage)
            await walker.turn(page, stage=stage, doc=stage + 1, head=stage + 1)
        await walker.turn("head_profile", stage=stage, view="gallery")


async def step(walker: Walker, name: str, steps: dict[str, Step]) -> None:
    """One step; what goes wrong in it is noted with the reader's other errors, and the reader goes on."""
    reader, before = walker.reader, len(walker.reader.seen.errors)
    try:
        await steps[name](walker)
    except LookupError as error:
        reader.seen.errors.append(str(error))
    reader.seen.errors += [f"a red box: {said}" for said in reader.alerts]
    reader.seen.errors[before:] = [f"{name}: {error}" for error in reader.seen.errors[before:]]
