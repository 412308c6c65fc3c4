"""What the page does: functions from (question, conversation) to what changes on it. They know nothing of Gradio.

A conversation belongs to one open page; it goes in and comes out as a value, so two browsers cannot meet.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

from rag.assistant import Assistant, Cancel
from rag.errors import AskError
from rag.records import Answer, Delta, Paper, Progress, Sentence, Turn, Verified
from ui import drafts, render, under
from ui.afterwards import bar
from ui.asking import Asking, at
from ui.following import following
from ui.markup import NOTHING, Html, text
from ui.streaming import Streams

logger = logging.getLogger(__name__)

#: Questions that suit the bundled abstracts, each with the beginning of the title of a paper that has to be there for it.
SEED_EXAMPLES = (
    ("Get More with LESS", "Which papers compress the KV cache?"),
    ("DiffDA", "What resolution does DiffDA reach?"),
    ("BrainLM", "How much fMRI data was BrainLM trained on?"),
    ("BiLLM", "How does BiLLM quantize weights?"),
    ("ClimODE", "Which papers forecast weather or climate?"),
    ("DiffDA", "Which papers study honey bees?"),
)
EXAMPLES = len(SEED_EXAMPLES)


@dataclass(frozen=True, slots=True)
class Chat:
    """A conversation: every question, turns for follow-ups, answers for their sources, what the log shows, and the question under way.

    Of that, the sentences of its answer that have been checked, and the text after them, which has not. `edited` is the question that was put
    back into the box, if any.
    """

    asked: tuple[Asking, ...] = ()
    turns: tuple[Turn, ...] = ()
    answers: tuple[Answer, ...] = ()
    log: Html = NOTHING
    edited: Asking | None = None
    question: str = ""
    checked: tuple[Sentence, ...] = ()
    draft: str = ""
    id: str = ""
    #: Gradio hashes a conversation with every token, which must not take longer the longer it is.
    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class View:
    """The conversation and what changes on the page; `None` leaves a part as it is.

    `box` is the text in the question box, `row` what is chosen above it.
    """

    chat: Chat
    log: Html | None = None
    status: Html | None = None
    checked: Html | None = None
    draft: Html | None = None
    sources: Html | None = None
    following: Html | None = None
    box: str | None = None
    row: tuple[str, ...] | None = None


async def ask(assistant: Assistant, streams: Streams, asking: Asking | None, chat: Chat, cancel: Cancel, box: str | None = "") -> AsyncGenerator[View, None]:
    """Asks, and yields the page as it changes. An `AskError` becomes a message in the chat; anything else is logged and apologised for.

    Leaving it early ends the question, as `cancel` does from elsewhere. `box` is what is left in the question box.
    """
    question = asking.question.strip() if asking else ""
    if not asking or not question:
        # A run that yields nothing would have Gradio empty the page.
        yield View(replace(chat, edited=None), status=NOTHING, box=box)
        return
    place = len(chat.asked)
    chat = replace(
        chat,
        asked=(*chat.asked, asking),
        log=chat.log + render.question(question, asking.told),
        edited=None,
        question=question,
        id=chat.id or secrets.token_hex(16),
    )
    yield View(chat, log=chat.log, status=render.working("Starting"), following=NOTHING, box=box)
    given: Answer | None = None
    ending = NOTHING
    try:
        stream = assistant.stream(question, **asking.options, cancel=cancel)
        async with aclosing(streams.events(stream, cancel)) as events:
            async for event in events:
                match event:
                    case Progress(stage=stage):
                        yield View(chat, status=render.working(stage))
                    case Delta(text=piece):
                        chat = replace(chat, draft=chat.draft + piece)
                        yield View(chat, draft=text(chat.draft))
                    case Verified(sentence=sentence):
                        chat = replace(chat, checked=(*chat.checked, sentence), draft=drafts.rest(chat.draft, sentence.text))
                        yield View(chat, checked=render.checked(chat.checked), draft=text(chat.draft))
                    case Answer():
                        given = event
                        ending = render.answer(event, len(chat.answers), under.standalone(event, place)) + bar(len(chat.answers))
                        chat = replace(chat, turns=(*chat.turns, assistant.turn(event)), answers=(*chat.answers, event))
    except AskError as error:
        ending = render.failure(error.message, error.hint)
    except Exception:
        logger.exception("a question failed")
        ending = render.failure("Something went wrong that should not have.", "Ask again; if it happens again, the server's log says more.")
    over = replace(asking, answer=given)
    chat = replace(chat, asked=(*chat.asked[:place], over), log=chat.log + ending + under.under(over, place), question="", checked=(), draft="")
    shown = render.sources(given, len(chat.answers) - 1) if given else None
    yield View(chat, log=chat.log, status=render.done(given), checked=NOTHING, draft=NOTHING, sources=shown)


def suggest(assistant: Assistant, chat: Chat) -> Html:
    """Questions to go on with after the last one, if it was answered."""
    given = chat.asked[-1].answer if chat.asked and not chat.question else None
    return under.following(following(assistant, given, [asked.question for asked in chat.asked])) if given else NOTHING


def stop(chat: Chat) -> View:
    """After the running question was ended: says so, and keeps what was written of it. Nothing changes if it had just been answered."""
    if not chat.question:
        return View(chat)
    place = len(chat.asked) - 1
    ending = render.stopped(chat.checked, chat.draft) + under.under(chat.asked[place], place)
    chat = replace(chat, log=chat.log + ending, question="", checked=(), draft="")
    return View(chat, log=chat.log, status=render.done(None), checked=NOTHING, draft=NOTHING)


def forget() -> View:
    """A new conversation."""
    return View(Chat(), log=NOTHING, status=NOTHING, checked=NOTHING, draft=NOTHING, sources=render.no_sources(), following=NOTHING, box="")


def select(chat: Chat, wanted: Mapping[str, Any]) -> View:
    """What a button changes on the page without asking. What it wants comes from a browser: what fits nothing changes nothing.

    Args:
        wanted: `turn`, `n` and `sentence`, to show the sources of an earlier answer with the words of one of them behind a sentence lit; or `edit`,
            the place of a question to put into the question box, or `standalone`, that of one whose stand-alone form is to be put there.
    """
    if (given := at(chat.answers, wanted.get("turn"))) is not None:
        turn = int(wanted["turn"])
        lit = next((s.n for s in given.sources if str(s.n) == wanted.get("n")), None)
        place = next((place for place in range(len(given.sentences)) if str(place) == wanted.get("sentence")), None)
        return View(chat, sources=render.sources(given, turn, lit, place))
    if (asked := at(chat.asked, wanted.get("edit"))) is not None:
        return View(replace(chat, edited=asked), status=render.editing(bool(asked.history)), box=asked.question)
    if (asked := at(chat.asked, wanted.get("standalone"))) is not None and asked.answer:
        return View(replace(chat, edited=replace(asked, history=())), status=render.editing(False), box=asked.answer.standalone_question)
    return View(chat)


def examples(papers: Sequence[Paper]) -> tuple[str, ...]:
    """Questions to click that this collection can take: written ones for the bundled abstracts, else one each for papers spread over it."""
    titles = [paper.title for paper in papers if paper.title]
    if all(any(title.startswith(needed) for title in titles) for needed, _ in SEED_EXAMPLES):
        return tuple(question for _, question in SEED_EXAMPLES)
    step = max(1, len(titles) // EXAMPLES)
    return tuple(f"What does “{title}” propose?" for title in titles[::step][:EXAMPLES])
