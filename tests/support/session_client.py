"""A reader without a browser: one Streamlit session over its websocket, in Streamlit's own protocol.

It does what the browser does as far as the server can tell: it keeps the address as the server changes it, says which
large messages it still has so that they are not sent again, sends widgets' values with every rerun, reruns a fragment
alone where the widget is in one, and asks again as often as an auto-rerun says. What it receives is searched for errors
and for words that belong to other readers, and then thrown away.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import requests
from streamlit.proto.Alert_pb2 import Alert
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.asyncio.client import ClientConnection, connect

PATIENCE = 600.0
"""Seconds that a run may take before it counts as hanging."""
_KEPT_RUNS = 2
"""For so many runs a browser keeps large messages that it has not seen again."""
_EARLY = ForwardMsg.FINISHED_EARLY_FOR_RERUN


@dataclass(frozen=True)
class ShownWidget:
    """A widget as the page has it; ``fragment`` is "" outside any."""

    id: str
    kind: str
    label: str
    fragment: str
    form: str
    options: tuple[str, ...]


@dataclass
class SessionRecord:
    """What a reader has gone through: run times in milliseconds, and sentences for all that was wrong."""

    runs: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    received: int = 0
    answered: bool = False
    """Whether the reader's own document came back, where one was brought."""


@dataclass
class SessionClient:
    """One session; open it with ``await SessionClient(…).open()``, leave with ``close``."""

    address: str
    foreign: Callable[[], Collection[bytes]] = tuple
    """Words that this reader must never see: the other readers'."""
    seen: SessionRecord = field(default_factory=SessionRecord)
    pages: dict[str, str] = field(default_factory=dict)
    """Each page's hash by its address; "" is the default one."""
    widgets: dict[str, ShownWidget] = field(default_factory=dict)
    alerts: list[str] = field(default_factory=list)
    """Red boxes of the page as it is shown now."""
    text: bytes = b""
    """All that the last run sent, as it came."""
    _socket: ClientConnection | None = None
    _page: str = ""
    _query: str = ""
    _values: dict[str, WidgetState] = field(default_factory=dict)
    _cached: dict[str, int] = field(default_factory=dict)
    _again: dict[str, float] = field(default_factory=dict)

    async def open(self, page: str = "", **query: object) -> SessionClient:
        url = self.address.replace("http://", "ws://") + "/_stcore/stream"
        self._socket = await connect(url, subprotocols=["streamlit"], max_size=None, open_timeout=60)  # type: ignore[list-item]
        self._query = urlencode(query)
        await self._run(page_name=page)
        return self

    async def close(self) -> None:
        assert self._socket is not None
        await self._socket.close()

    async def show(self, page: str, **query: object) -> None:
        """Follows a link to a page, as the navigation (without a query) and links between pages do."""
        self._query, self._values, self.widgets, self._again = urlencode(query), {}, {}, {}
        self.alerts = []
        await self._run(page_script_hash=self.pages[page])

    async def choose(self, label: str, value: object) -> None:
        """Sets the widget of that label and reruns; in a form nothing is rerun before its button is pressed."""
        widget = self.widget(label)
        self._values[widget.id] = _value(widget, value)
        if not widget.form or widget.kind == "button":
            await self._run(page_script_hash=self._page, fragment_id=widget.fragment)
        if widget.kind == "button":  # a press is no state: it counts once
            del self._values[widget.id]

    async def upload(self, label: str, name: str, data: bytes) -> None:
        """Puts a file into the uploader of that label as a browser does, and reruns until the app has taken it."""
        assert self._socket is not None
        said = BackMsg()
        said.file_urls_request.file_names.append(name)
        await self._socket.send(said.SerializeToString())
        message = ForwardMsg()
        while message.WhichOneof("type") != "file_urls_response":
            raw = await self._socket.recv()
            assert isinstance(raw, bytes)
            message = ForwardMsg.FromString(raw)
        urls = message.file_urls_response.file_urls[0]
        await asyncio.to_thread(self._put, urls.upload_url, name, data)
        state = WidgetState(id=self.widget(label).id)
        state.file_uploader_state_value.uploaded_file_info.add(
            name=name, size=len(data), file_id=urls.file_id, file_urls=urls
        )
        self._values[state.id] = state
        await self._run(page_script_hash=self._page)

    def _put(self, place: str, name: str, data: bytes) -> None:
        health = requests.get(f"{self.address}/_stcore/health", timeout=PATIENCE)
        token = health.cookies.get("_streamlit_xsrf") or ""
        done = requests.put(
            f"{self.address}{place}",
            files={"file": (name, data)},
            cookies=health.cookies,
            headers={"X-Xsrftoken": token},
            timeout=PATIENCE,
        )
        if done.status_code >= 400:
            self.seen.errors.append(f"the server took no file: {done.status_code}")

    def widget(self, label: str) -> ShownWidget:
        found = [widget for widget in self.widgets.values() if widget.label == label]
        if not found:
            raise LookupError(f"No widget '{label}'; there are: {', '.join(w.label for w in self.widgets.values())}.")
        return found[-1]

    async def settle(self, seconds: float = PATIENCE) -> None:
        """Reruns what the page wants rerun again and again, until it no longer does."""
        until = time.monotonic() + seconds
        while self._again:
            if time.monotonic() > until:
                self.seen.errors.append(f"a page still waits after {seconds:.0f} s")
                return
            fragment, interval = next(iter(self._again.items()))
            await asyncio.sleep(interval)
            await self._run(page_script_hash=self._page, fragment_id=fragment, is_auto_rerun=True)

    async def _run(self, **state: Any) -> None:
        assert self._socket is not None
        said = BackMsg()
        said.rerun_script.query_string = self._query
        said.rerun_script.widget_states.widgets.extend(self._values.values())
        said.rerun_script.cached_message_hashes.extend(self._cached)
        for name, value in state.items():
            setattr(said.rerun_script, name, value)
        began = time.perf_counter()
        try:
            await self._socket.send(said.SerializeToString())
            async with asyncio.timeout(PATIENCE):
                await self._take_in()
        except TimeoutError:
            self.seen.errors.append(f"no answer within {PATIENCE:.0f} s")
            raise
        self.seen.runs.append(1000 * (time.perf_counter() - began))

    async def _take_in(self) -> None:
        """All messages of a run, and of the reruns that it asks for itself, up to the last one's end."""
        assert self._socket is not None
        parts: list[bytes] = []
        while True:
            raw = await self._socket.recv()
            assert isinstance(raw, bytes)
            parts.append(raw)
            self.seen.received += len(raw)
            self.seen.errors += [f"another reader's word: {word.decode()}" for word in self.foreign() if word in raw]
            message = ForwardMsg.FromString(raw)
            if message.metadata.cacheable or message.ref_hash:
                self._cached[message.ref_hash or message.hash] = 0
            if message.WhichOneof("type") == "script_finished" and message.script_finished != _EARLY:
                break
            self._note(message)
        self._cached = {name: age + 1 for name, age in self._cached.items() if age < _KEPT_RUNS}
        self.text = b"".join(parts)

    def _note(self, message: ForwardMsg) -> None:
        kind = message.WhichOneof("type")
        if kind == "new_session":
            self._page = message.new_session.page_script_hash
            if not message.metadata.run.fragment_ids:  # the whole page, and not one fragment of it
                self.widgets, self.alerts, self._again = {}, [], {}
        elif kind == "navigation":
            self._page = message.navigation.page_script_hash
            for page in message.navigation.app_pages:
                self.pages["" if page.is_default else page.url_pathname] = page.page_script_hash
        elif kind == "page_info_changed":
            self._query = message.page_info_changed.query_string
        elif kind == "auto_rerun":
            self._again[message.auto_rerun.fragment_id] = message.auto_rerun.interval
        elif kind == "stop_auto_rerun":
            for fragment in message.stop_auto_rerun.fragment_ids:
                self._again.pop(fragment, None)
        elif kind == "page_not_found":
            self.seen.errors.append("a page was not found")
        elif kind == "delta" and message.delta.WhichOneof("type") == "new_element":
            self._note_element(message.delta)

    def _note_element(self, delta: Any) -> None:
        kind = delta.new_element.WhichOneof("type")
        element = getattr(delta.new_element, kind)
        if kind == "exception":
            self.seen.errors.append(f"{element.type}: {element.message}")
        elif kind == "alert" and element.format == Alert.ERROR:
            self.alerts.append(element.body)
        elif getattr(element, "id", "") and getattr(element, "label", ""):
            options = tuple(getattr(option, "content", option) for option in getattr(element, "options", ()))
            self.widgets[element.id] = ShownWidget(
                element.id, kind, element.label, delta.fragment_id, getattr(element, "form_id", ""), options
            )
            if getattr(element, "set_value", False):  # the server has changed it: ours no longer counts
                self._values.pop(element.id, None)


def _value(widget: ShownWidget, value: Any) -> WidgetState:
    """The value as a browser would send it for such a widget."""
    state = WidgetState(id=widget.id)
    if widget.kind == "button":
        state.trigger_value = True
    elif widget.kind == "checkbox":
        state.bool_value = bool(value)
    elif widget.kind in ("button_group", "multiselect"):
        state.string_array_value.data.extend([value] if isinstance(value, str) else value)
    else:
        state.string_value = value
    return state
