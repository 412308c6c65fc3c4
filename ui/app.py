"""The page's layout and wiring in Gradio, and the server that shows it.

Nothing on the page comes from another host: analytics are off (in `ui/__init__.py`), fonts are the system's, sharing is off unless asked for,
and a content security policy has the browser refuse the rest.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import gradio as gr

from rag.assistant import Assistant, Cancel
from rag.errors import AskError
from ui import first, handlers, keeping, options, programs, render, under
from ui.afterwards import PANEL
from ui.asking import Asking, again, typed
from ui.handlers import Chat, View
from ui.streaming import Streams

TITLE = "Ask abstracts"
#: Conversations that suggestions are looked for at once: they must not keep questions waiting.
SUGGESTING = 1
#: Characters the question box takes; the assistant refuses longer ones.
LONGEST_QUESTION = 5_000
#: Seconds between looks at whether the server is still up.
WATCH_EVERY_S = 0.5
#: Seconds that an answer which is being left is waited for at most; it ends at its next event, as a rule within milliseconds.
LEAVING_S = 5.0

HERE = Path(__file__).parent
#: `unsafe-inline` and `unsafe-eval` are what Gradio's own page needs; the point is that nothing is loaded from or sent to another host.
POLICY = "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; base-uri 'self'; form-action 'self'; object-src 'none'"
HEAD = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}"><meta name="referrer" content="no-referrer">'


def build(assistant: Assistant, streams: Streams | None = None) -> gr.Blocks:
    """The page. Launch it with `launch`, which brings its looks and keeps it to this host."""
    streams = streams or Streams()
    papers = assistant.papers()
    #: The last question of each open page, and whether it is over.
    under_way: dict[str | None, tuple[Cancel, asyncio.Event]] = {}
    page = gr.Blocks(title=TITLE, analytics_enabled=False, fill_width=True)
    with page:
        chat = gr.State(Chat())
        with gr.Row(elem_id="masthead"):
            _html(render.header(papers, assistant.disclosure(), assistant.settings).markup)
            past = _html("", elem_id="past-chats", html_template=PANEL.markup, js_on_load=(HERE / "keep.js").read_text("utf-8"))
            new = gr.Button("New chat", elem_id="new", size="sm")
        with gr.Row(elem_id="desk"):
            with gr.Column(elem_id="talk"):
                with gr.Column(elem_id="scroller"):
                    log = _html(
                        "",
                        elem_id="log",
                        html_template='<div role="log" aria-label="Conversation">${value}</div>',
                        js_on_load=(HERE / "page.js").read_text("utf-8"),
                    )
                    checked = _html("", elem_id="checked", html_template='<p class="aside">Checked so far:</p><p class="claims">${value}</p>')
                    draft = _html("", elem_id="draft", html_template='<p class="aside">Not checked yet:</p><p class="draft">${value}</p>')
                    status = _html("", elem_id="status", html_template='<div role="status">${value}</div>')
                    more = _html("", elem_id="following")
                    with gr.Column(elem_id="examples"):
                        _html(first.welcome(papers).markup)
                        _html(under.questions(handlers.examples(papers)).markup)
                with gr.Column(elem_id="foot"):
                    with gr.Row(elem_id="options"):
                        controls = options.row(papers, assistant.settings)
                    composer = gr.Row(elem_id="composer")
                with composer:
                    box = gr.Textbox(
                        label="Question",
                        show_label=False,
                        container=False,
                        placeholder="Ask a question",
                        lines=1,
                        max_lines=6,
                        max_length=LONGEST_QUESTION,
                        elem_id="question",
                        html_attributes=gr.InputHTMLAttributes(autocomplete="off"),
                    )
                    ask = gr.Button("Ask", variant="primary", elem_id="ask", min_width=72)
                    stop = gr.Button("Stop", elem_id="stop", min_width=72)
            with gr.Column(elem_id="shelf"):
                sources = _html(
                    render.no_sources().markup,
                    elem_id="sources",
                    html_template='<section aria-label="Sources">${value}</section>',
                    js_on_load="watch('value', () => { element.closest('#sources').scrollTop = 0; element.querySelector('.lit')?.focus(); "
                    "element.querySelector('mark .lit')?.scrollIntoView({ block: 'nearest' }); });",
                )

        parts: list[Any] = [chat, log, status, checked, draft, sources, more, box, *controls]
        quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
        running: dict[str, Any] = quiet | {"concurrency_limit": None}  # `Streams` has them wait in line, and says so

        async def run(
            question: str, state: Chat, venue: str, year: str, author: str, mode: str, sources: str, request: gr.Request, event: gr.EventData
        ) -> AsyncIterator[list[Any]]:
            wanted, box, row = _data(event), None, None
            set_above = (venue, year, author, mode, sources)
            how = options.chosen(*set_above)
            if "asked" in wanted:
                asking = again(state.asked, wanted)
                row = options.less(*set_above, asking.dropped[-1]) if asking and "without" in wanted else None
            elif "question" in wanted:
                asking = Asking(str(wanted["question"]), **how)
            else:
                asking, box = typed(question, state.turns, state.edited, **how), ""
            cancel, over = under_way[request.session_hash] = Cancel(), asyncio.Event()
            try:
                async with aclosing(handlers.ask(assistant, streams, asking, state, cancel, box)) as views:
                    async for view in views:
                        yield _updates(replace(view, row=row))
                        row = None
            finally:
                over.set()

        async def leave(request: gr.Request) -> None:
            """Ends what is being asked, if anything, and waits until it changes the page no more."""
            # Gradio itself notices a closed tab only at the question's next event, and a silent model gives none.
            if running := under_way.pop(request.session_hash, None):
                running[0].cancel()
                # One that Gradio dropped instead of ending it changes nothing more, and may not be over before it is collected.
                with suppress(TimeoutError):
                    await asyncio.wait_for(running[1].wait(), LEAVING_S)

        def select(state: Chat, event: gr.EventData) -> list[Any]:
            return _updates(handlers.select(state, _data(event)))

        # One event for every way to ask, so that a page asks one question at a time.
        asked = gr.on([box.submit, ask.click, log.submit], run, [box, chat, *controls], parts, **running)
        stop.click(None, cancels=asked).then(lambda state: _updates(handlers.stop(state)), chat, parts, **quiet)
        new.click(None, cancels=asked).then(lambda: _updates(replace(handlers.forget(), row=options.UNSET)), None, parts, **quiet)
        log.select(select, chat, parts, **quiet)
        page.unload(leave)
        reopened = _keep(assistant, chat, past, parts, asked, leave, quiet)
        for shown in (asked, reopened):
            shown.then(lambda state: handlers.suggest(assistant, state).markup, chat, more, concurrency_limit=SUGGESTING, **quiet)
        programs.serve(assistant, streams)
    return page


def _keep(
    assistant: Assistant,
    chat: gr.State,
    past: gr.HTML,
    parts: list[Any],
    asked: Any,
    leave: Callable[[gr.Request], Awaitable[None]],
    quiet: dict[str, Any],
) -> Any:
    """Wires what is done with answers afterwards; what an event carries comes from a browser. Returns the event of a conversation that was opened.

    `leave` ends what is being asked.
    """

    def take(state: Chat, event: gr.EventData) -> Any:
        try:
            return keeping.taken(state, _data(event).get("form"), _data(event).get("turn"))
        except AskError as error:
            return keeping.message(told=str(error))

    def judge(state: Chat, event: gr.EventData) -> str:
        try:
            keeping.judged(assistant, state, _data(event))
        except AskError as error:
            return keeping.message(told=str(error))
        return keeping.message(told="Kept on this server, with the question and the answer. Thank you.")

    async def reopen(state: Chat, request: gr.Request, event: gr.EventData) -> list[Any]:
        await leave(request)  # else its last change could put the conversation that was left in the place of this one
        try:
            return [*_updates(keeping.reopened(assistant, _data(event).get("answers"), _data(event).get("id"))), gr.skip()]
        except AskError:
            told = "A kept conversation could not be read, and was forgotten."
            return [*_updates(View(state)), keeping.message(forget=_data(event).get("id"), told=told)]

    asked.then(keeping.kept, chat, past, **quiet)
    every: dict[str, Any] = quiet | {"trigger_mode": "multiple"}  # a thumb and its word follow each other faster than the first is kept
    past.download(take, chat, past, **every)
    past.like(judge, chat, past, **every)
    return past.select(reopen, chat, [*parts, past], cancels=asked, **every)


def launch(page: gr.Blocks, host: str, port: int, share: bool = False, logins: Sequence[tuple[str, str]] = (), beside: dict[str, Any] | None = None) -> str:
    """Starts the server in the background and returns its address.

    Args:
        logins: who may use it, name and password; everybody where it is empty.
        beside: what FastAPI is to serve beside the page, from `ui.tools.server`.

    Raises:
        AskError: nothing can listen at that host and port.
    """
    _refuse_if_taken(host, port)
    # Gradio asks its own address once while starting; that must not go through a proxy.
    os.environ["NO_PROXY"] = ",".join(x for x in (os.environ.get("NO_PROXY") or os.environ.get("no_proxy"), "localhost,127.0.0.1", host) if x)
    page.queue(api_open=False).launch(
        server_name=host,
        server_port=port,
        share=share,
        prevent_thread_lock=True,
        quiet=True,
        theme=_theme(),
        css_paths=HERE / "page.css",
        head=HEAD,
        footer_links=[],
        run_history=False,
        enable_monitoring=False,
        mcp_server=False,
        app_kwargs=(beside or {}) | {"exception_handlers": {TypeError: programs.refused}},
        auth=list(logins) or None,
        ssr_mode=False,
    )
    return str(page.local_url)


def serve(assistant: Assistant, host: str, port: int, share: bool, ready: Callable[[str], None], mcp: bool = False) -> None:
    """Shows the page until it is interrupted. Prints nothing.

    Args:
        ready: is told the address as soon as the page can be opened there.
        mcp: whether to serve the tools for other assistants beside it.

    Raises:
        AskError: nothing can listen at that host and port, or the package for the tools is missing.
    """
    _refuse_if_taken(host, port)
    streams = Streams()
    beside = _tools(assistant, streams, host) if mcp else None
    page = build(assistant, streams)
    launch(page, host, port, share, assistant.settings.logins, beside)
    try:
        ready(f"http://{host}:{port}")
        while page.is_running:
            time.sleep(WATCH_EVERY_S)
    finally:
        page.close(verbose=False)


def _tools(assistant: Assistant, streams: Streams, host: str) -> dict[str, Any]:
    try:
        from ui import tools
    except ModuleNotFoundError as error:
        raise AskError(f"The tools for other assistants need the package {error.name}.", 'Install it with `pip install "ask-abstracts[mcp]"`.') from None
    return tools.server(assistant, streams, host)


def _data(event: gr.EventData) -> dict[str, Any]:
    """What a script of the page sends with an event; nothing where Gradio's own components do."""
    return event._data if isinstance(event._data, dict) else {}


def _html(value: str, **options: Any) -> gr.HTML:
    """A part of the page, without Gradio's typography."""
    return gr.HTML(value, apply_default_css=False, **({"js_on_load": None} | options))


def _theme() -> gr.themes.Base:
    """Gradio's default with the system's fonts and a button dark enough for white text (contrast 5.5)."""
    theme = gr.themes.Default(
        primary_hue="teal", neutral_hue="slate", font=("ui-sans-serif", "system-ui", "sans-serif"), font_mono=("ui-monospace", "monospace")
    )
    fills = (
        "button_primary_background_fill",
        "button_primary_background_fill_dark",
        "button_primary_background_fill_hover",
        "button_primary_background_fill_hover_dark",
    )
    return theme.set(**dict(zip(fills, ("*primary_700", "*primary_700", "*primary_800", "*primary_600"), strict=True)))


def _updates(view: View) -> list[Any]:
    """A view as Gradio's outputs, in the order of `parts`."""
    shown = (view.log, view.status, view.checked, view.draft, view.sources, view.following)
    said = (view.box, *(view.row or (None,) * len(options.UNSET)))
    return [view.chat, *(gr.skip() if part is None else part.markup for part in shown), *(gr.skip() if value is None else value for value in said)]


def _refuse_if_taken(host: str, port: int) -> None:
    """Binds once: Gradio itself says of every failure that no port is free."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except (socket.gaierror, UnicodeError) as error:
        raise AskError(f"The host {host} is not known.", "Pass --host 127.0.0.1, or an address of this machine.") from error
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise AskError(f"Port {port} of {host} is in use.", f"Pass another one, such as --port {port + 1}, or end what is using it.") from error
        raise AskError(f"Nothing can listen at port {port} of {host}: {error.strerror}.", "Pass --host 127.0.0.1 and a --port above 1023.") from error
