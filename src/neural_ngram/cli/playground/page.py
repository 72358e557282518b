"""The playground's page; every tab that opens it has a prompt of its own."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from socket import socket
from typing import Any

from nicegui import app, run, ui

from neural_ngram.cli.playground import view
from neural_ngram.cli.playground.guard import Guard
from neural_ngram.cli.playground.view import Choice
from neural_ngram.errors import NeuralNgramError
from neural_ngram.generation.trained import Trained
from neural_ngram.settings import GenerationSettings

__all__ = ["serve"]

Shelf = Mapping[str, Callable[[], Trained]]
STYLE = Path(__file__).with_name("page.css")
SHOWN = 12
NO_MODEL = "none"


@dataclass
class Play:
    """The state of a tab: the prompt, the sampling settings, and how often it was sampled."""

    prompt: bytes
    asked: GenerationSettings
    token: str = ""
    turns: int = 0


def serve(shelf: Shelf, asked: GenerationSettings, door: socket, *, browser: bool) -> None:
    """Serve the page through a listening socket of 127.0.0.1 until interrupted."""
    ui.page("/")(lambda: _page(shelf, Play(asked.prompt.encode(), asked)))
    port = door.getsockname()[1]
    app.add_middleware(Guard, port=port)
    line = f"playground at http://127.0.0.1:{port}; Ctrl-C stops it"
    app.on_startup(lambda: print(line, flush=True))
    ui.run(
        host="127.0.0.1",
        port=port,
        fd=door.fileno(),
        title="neural n-gram",
        favicon="🎲",
        dark=None,
        reload=False,
        show=browser,
        show_welcome_message=False,
    )


def _page(shelf: Shelf, play: Play) -> None:
    ui.add_css(STYLE)
    sides: list[Any] = []
    with ui.column().classes("page"):
        ui.label("neural n-gram").classes("title")
        box = ui.textarea("Prompt").props("outlined autogrow spellcheck=false").classes("prompt")
        # One character more than the limit, so that a longer text is refused, not silently cut.
        box.props(f"maxlength={view.MOST_CHARACTERS + 1}")
        box.value = view.shown(play.prompt)

        def refresh() -> None:
            for side in sides:
                side.refresh()

        def put(prompt: bytes) -> None:
            play.prompt = prompt
            box.value = view.shown(prompt)
            refresh()

        def typed() -> None:
            if (box.value or "") != view.shown(play.prompt):
                play.prompt = (box.value or "").encode("utf-8", "replace")
                refresh()

        box.on_value_change(typed)
        with ui.element("div").classes("controls"):
            _controls(play, refresh)
        with ui.element("div").classes("sides"):
            names = list(shelf)
            for first in (names[0], names[1] if len(names) > 1 else NO_MODEL):
                sides.append(_side(shelf, play, first, put))


def _controls(play: Play, refresh: Callable[[], None]) -> None:
    def ask(name: str, value: Any) -> None:
        whole = isinstance(value, float) and value.is_integer()
        changed: dict[str, Any] = {name: int(value) if whole else value}
        play.asked = replace(play.asked, **changed)
        refresh()

    def look_up(text: str | None) -> None:
        play.token = text or ""
        refresh()

    asked = play.asked
    _slider("temperature", asked.temperature, (0, 2, 0.05), lambda x: ask("temperature", x))
    _slider("top-k (0: off)", asked.top_k or 0, (0, 100, 1), lambda x: ask("top_k", x or None))
    _slider("top-p", asked.top_p, (0.05, 1, 0.05), lambda x: ask("top_p", x))
    _slider("new tokens", asked.max_new_tokens, (1, 200, 1), lambda x: ask("max_new_tokens", x))
    ui.input("Neighbours of token", on_change=lambda event: look_up(event.value)).props(
        "outlined dense clearable"
    )


def _slider(
    name: str, value: float, span: tuple[float, float, float], change: Callable[[Any], None]
) -> None:
    low, high, step = span
    with ui.column().classes("slider"):
        with ui.row().classes("named"):
            ui.label(name)
            number = ui.label(f"{value:g}")
        slider = ui.slider(min=low, max=max(high, value), step=step, value=value)
        slider.props(f'aria-label="{name}"')

    def moved() -> None:
        value = slider.value  # from the browser, so perhaps not a number
        known = isinstance(value, int | float)
        number.text = f"{value:g}" if known else repr(value)
        change(round(value, 2) if known else value)

    slider.on_value_change(moved)


def _side(shelf: Shelf, play: Play, first: str, put: Callable[[bytes], None]) -> Any:
    """One model; returns what redraws it.

    Loading takes time but drawing does not yield, so two drawings never interleave.
    """
    played: Trained | Exception | None = None
    with ui.column().classes("side"):
        chosen = ui.select([*shelf, NO_MODEL], value=first, label="Model").props("outlined dense")

        @ui.refreshable
        def body() -> None:
            if chosen.value == NO_MODEL:
                ui.label("Choose a model to compare with.").classes("quiet")
            elif isinstance(played, Trained):
                _model(played, play, put)
            elif played is not None:
                _refused(played)

        async def load() -> None:
            nonlocal played
            name, played = chosen.value, None
            found: Trained | Exception | None
            body.refresh()
            try:
                found = await run.io_bound(shelf[name]) if name in shelf else None
            except Exception as problem:
                found = problem
            if name == chosen.value:
                played = found
                body.refresh()

        body()
        chosen.on_value_change(load)
        ui.timer(0, load, once=True)
    return body


def _model(played: Trained, play: Play, put: Callable[[bytes], None]) -> None:
    try:
        found = view.choices(played, play.prompt, play.asked, SHOWN)
    except NeuralNgramError as problem:
        _refused(problem)
        return
    _bars(found, play.prompt, put)
    ui.button("sample on", on_click=lambda: _sample(played, play, put)).props("outline")
    if play.token:
        _neighbours(played, play.token)


def _bars(found: list[Choice], prompt: bytes, put: Callable[[bytes], None]) -> None:
    for choice in found:
        button = ui.element("button").classes("bar")
        with button:
            ui.label(choice.label).classes("token")
            with ui.element("div").classes("track"):
                ui.element("div").classes("fill").style(f"width: {choice.probability:.2%}")
            ui.label(f"{choice.probability:.1%}").classes("number")
        if choice.prompt == prompt:
            button.props("disabled")
        else:
            button.on("click", lambda _, choice=choice: put(choice.prompt))


def _sample(played: Trained, play: Play, put: Callable[[bytes], None]) -> None:
    asked = replace(play.asked, seed=play.asked.seed + play.turns)
    play.turns += 1
    try:
        put(view.continued(played, play.prompt, asked))
    except NeuralNgramError as problem:
        ui.notify(str(problem), type="negative")


def _neighbours(played: Trained, token: str) -> None:
    ui.label("Nearest in embedding space").classes("heading")
    try:
        found = view.neighbours(played, token, SHOWN)
    except NeuralNgramError as problem:
        _refused(problem)
        return
    with ui.element("div").classes("neighbours"):
        for name, cosine in found:
            with ui.row().classes("neighbour"):
                ui.label(name).classes("token")
                ui.label(f"{cosine:.2f}").classes("number")


def _refused(problem: Exception) -> None:
    ui.label(str(problem)).classes("refused")
