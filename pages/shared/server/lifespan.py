"""The server's own half: what is said at the start, the first look at the app, and what monitoring asks for."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import streamlit as st
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Route
from streamlit import config, runtime

from core import VERSION
from core.errors import Mistake
from core.machine import wait_asleep
from core.remote.mirror import default_cache, for_readers, is_read_only
from core.runs.backend import backend_at
from core.runs.run import run_names
from core.settings import Settings, read_settings, unknown_settings
from pages.shared.build import stop_builds
from pages.shared.embedding import model_pool
from pages.shared.paper import FILES as PAPER_FILES
from pages.shared.paper import TYPES as PAPER_TYPES
from pages.shared.plotly import FILES as PLOTLY_FILES
from pages.shared.server.access import find_gate
from pages.shared.server.front_end import FIGURES
from pages.shared.server.guard import sign_outs
from pages.shared.server.log import event, set_up
from pages.shared.server.metrics import CONTENT_TYPE, exposition, watch
from pages.shared.server.packed import packed
from pages.shared.server.uploads import held_bytes, keep_letting_go

FRESH = 15.0
"""Seconds that an answer about the app's health is good for, however often it is asked."""


@asynccontextmanager
async def lifespan(_: st.App) -> AsyncIterator[None]:
    """Around the server's life: its settings are taken before anybody comes."""
    wait_asleep()
    config.set_option("logger.enableRich", False)  # it would print an error's own words past the log
    watch("headscope_runs", lambda: len(run_names(default_cache())))
    watch("headscope_sessions", _sessions)
    watch("headscope_queue_length", lambda: model_pool().queue.length())
    watch("headscope_upload_bytes", held_bytes)
    try:
        settings = read_settings()
        set_up(settings.log_level, settings.log_format)
        config.set_option("server.maxUploadSize", settings.upload_mb)
    except Mistake:  # said below, and on every page
        set_up()
    announce()
    # Streamlit knows the pages only after the script has run: without this, a first visitor by a deep link would be
    # told "Page not found". What pages import is there then, too.
    await HEALTH.ask()
    gc.freeze()  # modules stay as long as the server does: no later collection has to look through them
    letting_go = asyncio.create_task(keep_letting_go())
    yield
    letting_go.cancel()
    stop_builds()


class Health:
    """Whether the app shows pages: its settings are right, and the first one runs, tried for real by Streamlit."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._asked = float("-inf")
        self._well = False

    async def ask(self) -> bool:
        """Those who ask at once wait for one answer."""
        async with self._lock:
            if time.monotonic() - self._asked > FRESH:
                ran, _ = await runtime.get_instance().does_script_run_without_error()
                self._well, self._asked = ran and _is_set_up(), time.monotonic()
            return self._well


def announce() -> None:
    """Says with which settings the server starts, and whether anybody may come in."""
    for sentence in unknown_settings():
        event("setting", sentence=sentence)
    try:
        settings = read_settings()
        gate = find_gate(settings)
        cache = for_readers(default_cache())
    except Mistake as mistake:
        for sentence in mistake.sentences:
            event("closed", sentence=sentence)
        return
    names = run_names(cache)
    event("start", **_shown(settings), runs=len(names), auth="off" if gate.is_open else "on")
    if gate.is_open:
        event("open", sentence="No sign-in is required: Streamlit's secrets have no [auth] section.")
    elif not sign_outs(settings.state).is_kept():
        event(
            "setting",
            sentence=f"Sign-outs are remembered until the server stops, because {settings.state} cannot be "
            "written. Set HEADSCOPE_STATE to a folder that can.",
        )
    if settings.run is not None and settings.run not in names:
        event("setting", sentence=f"HEADSCOPE_RUN is '{settings.run}', and the cache has no such run.")


def _is_set_up() -> bool:
    try:
        find_gate(read_settings())
    except Mistake:
        return False
    return True


def _shown(settings: Settings) -> dict[str, str | int | bool]:
    return {
        "version": VERSION,
        "cache": backend_at(default_cache()).place,
        "domains": len(settings.allowed_domains),
        "read_only": is_read_only(settings),
        "device": settings.device or "auto",
        "upload_mb": settings.upload_mb,
        "log_level": settings.log_level,
    }


def _sessions() -> float:
    stats = runtime.get_instance().stats_mgr.get_stats(family_names=["active_sessions"])
    return float(sum(getattr(stat, "value", 0) for stat in stats.get("active_sessions", ())))


async def _healthz(_: Request) -> PlainTextResponse:
    well = await HEALTH.ask()
    return PlainTextResponse("ok\n" if well else "no page can be shown\n", 200 if well else 503, _NOT_KEPT)


async def _metrics(_: Request) -> PlainTextResponse:
    text = await asyncio.to_thread(exposition)
    return PlainTextResponse(text, headers={**_NOT_KEPT, "Content-Type": CONTENT_TYPE})


async def _paper(request: Request) -> Response:
    """The scripts and fonts of figures for a paper, which a browser asks for when somebody saves one."""
    path = PAPER_FILES.get(request.path_params["name"])
    if path is None:
        return PlainTextResponse("no such file\n", 404)
    return FileResponse(path, media_type=PAPER_TYPES[path.suffix], headers={"Cache-Control": "no-cache"})


async def _figures(_: Request) -> Response:
    return FileResponse(FIGURES, media_type="text/javascript", headers={"Cache-Control": "no-cache"})


async def _plotly(request: Request) -> Response:
    path = PLOTLY_FILES.get(request.path_params["name"])
    if path is None:
        return PlainTextResponse("no such file\n", 404)
    return await packed(path, request.headers)


_NOT_KEPT = {"Cache-Control": "no-store"}
HEALTH = Health()
ROUTES = (
    Route("/healthz", _healthz),
    Route("/metrics", _metrics),
    Route("/paper/{name}", _paper),
    Route("/figures.js", _figures),
    Route("/plotly/{version}/{name}", _plotly),
)
