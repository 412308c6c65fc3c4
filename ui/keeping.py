"""What a reader can do with answers afterwards: take them along, judge them, and come back to a conversation that their browser kept.

Conversations are kept by the browser alone (`keep.js`), so that nothing of one person lies on the server for another. What comes back from there is as
untrusted as any request. The server answers with messages for that script: JSON, which no template shows.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from rag.assistant import Assistant, answer_object, bibtex, markdown
from rag.errors import InputError, UsageError
from rag.records import Answer
from ui import render, under
from ui.afterwards import FORMATS, bar
from ui.asking import Asking
from ui.handlers import Chat, View
from ui.markup import Html, join

#: Answers of a conversation that is opened again; `keep.js` sends the newest.
MOST_ANSWERS = 200
_ID = re.compile(r"[0-9a-z-]{8,64}")


def kept(chat: Chat) -> str:
    """The newest answer, for the browser to keep in its conversation; nothing where the last question was ended."""
    return message(conversation=chat.id, turn=len(chat.answers) - 1, answer=answer_object(chat.answers[-1])) if chat.answers and not chat.question else ""


def taken(chat: Chat, form: object, turn: object) -> str:
    """An answer, or the conversation where `turn` is no number, as a file.

    Raises:
        UsageError: there is nothing to take, or no such form.
    """
    chosen = _chosen(chat, turn) if turn is not None else chat.answers
    if form not in tuple(FORMATS) or not chosen:
        raise UsageError("There is nothing to take along yet.", "Ask a question first.")
    if form == "json":
        objects = [answer_object(answer) for answer in chosen]
        text = json.dumps(objects if turn is None else objects[0], ensure_ascii=False, indent=1)
    elif form == "bibtex":
        text = bibtex({source.paper.id: source.paper for answer in chosen for source in answer.sources}.values())
        if not text:
            raise UsageError("No paper is cited here.", "Take the answer along as Markdown or JSON.")
    else:
        text = markdown(chosen)
    _, ending, kind = FORMATS[str(form)]
    name = re.sub(r"[^a-z0-9]+", "-", chosen[0].question.lower())[:60].strip("-") or "answer"
    return message(save=text, name=f"{name}.{ending}", type=kind)


def judged(assistant: Assistant, chat: Chat, data: Mapping[str, Any]) -> None:
    """Keeps what somebody thought of an answer.

    Raises:
        UsageError: there is no such answer, or no such verdict.
        StoreError: it cannot be kept.
    """
    turn, conversation, word = data.get("turn"), data.get("conversation"), data.get("word")
    (answer,) = _chosen(chat, turn) or (None,)
    if answer is None or not isinstance(conversation, str) or not _ID.fullmatch(conversation) or not isinstance(word, str):
        raise UsageError("There is no such answer.", "Ask again, and judge the new one.")
    verdict = data.get("verdict")
    assistant.feedback.keep(f"{conversation}-{turn}", verdict, answer, word=word, follow_up=turn != 0)  # type: ignore[arg-type]  # refused there


def reopened(assistant: Assistant, answers: object, conversation: object) -> View:
    """A conversation as its browser kept it, under its id, on the page again.

    Raises:
        InputError: it is no conversation.
    """
    if not isinstance(answers, list) or not 0 < len(answers) <= MOST_ANSWERS or not (isinstance(conversation, str) and _ID.fullmatch(conversation)):
        raise InputError("This is no conversation.", "Begin a new one.")
    given = tuple(assistant.restored(answer) for answer in answers)
    turns = tuple(assistant.turn(answer) for answer in given)
    asked = tuple(Asking(answer.question, turns[:n], answer=answer) for n, answer in enumerate(given))
    log = join(part for n, asking in enumerate(asked) for part in _shown(asking, given[n], n))
    chat = Chat(turns=turns, answers=given, asked=asked, log=log, id=conversation)
    return View(chat, log=log, status=render.done(given[-1]), draft=join(()), sources=render.sources(given[-1], len(given) - 1), following=join(()), box="")


def _shown(asking: Asking, given: Answer, n: int) -> tuple[Html, ...]:
    """A question with its answer and what stands under it."""
    return render.question(asking.question), render.answer(given, n, under.standalone(given, n)), bar(n), under.under(asking, n)


def message(**parts: Any) -> str:
    """A message for the script, no two alike, without the one character that begins a tag."""
    return json.dumps(parts | {"at": time.time_ns()}).replace("<", "\\u003c")


def _chosen(chat: Chat, turn: object) -> Sequence[Answer]:
    """The answer of a turn; none where a browser names one that is not there."""
    return chat.answers[turn : turn + 1] if isinstance(turn, int) and turn >= 0 else ()
