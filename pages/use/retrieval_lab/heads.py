"""Which heads are kept, and with what weight: presets, then a switch and a weight for every head."""

from __future__ import annotations

import numpy as np
import streamlit as st

from core.analysis.roles import RULES
from core.model.shape import ModelShape
from core.model.stages import HEADS, STAGES
from pages.shared.components.head_weights import HeadTiles, head_weights
from pages.shared.corpus import best_reliability
from pages.shared.data import RunState, tables
from pages.shared.figures.reliability import right_for
from pages.shared.heads_in_address import LONGEST_WEIGHTS, format_weights, parse_weights
from pages.shared.show import theme
from pages.shared.theme import head_colours
from pages.shared.url import choice_to_url, decide, words_from_url
from pages.use.retrieval_lab.data import rows


def heads_control(state: RunState, stage: int, task: str | None) -> np.ndarray:
    """``[head]`` weights, 0 for heads that are off; presets, then a switch and a weight for every head."""
    assert state.manifest is not None
    shape = state.manifest.shape
    words_from_url("mix", LONGEST_WEIGHTS)
    weights = parse_weights(st.session_state["mix"], shape.heads)
    if weights is None:
        st.toast("The link names heads that do not exist; all heads are kept.", icon=":material/link_off:")
        weights = np.ones(shape.heads)
        decide("mix", "")
    choice_to_url("mix", format_weights(weights), "")
    known = _presets(state, stage, task)
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    with left:
        st.markdown(f"##### Kept heads: {int((weights > 0).sum())} of {shape.heads}")
    with right:
        st.selectbox(
            "Preset",
            list(known),
            index=None,
            key="lab preset",
            placeholder="Preset …",
            label_visibility="collapsed",
            on_change=_take_preset,
            args=(known,),
        )
    head_weights(
        "head weights",
        HeadTiles(_groups(shape), head_colours(shape.heads, shape.kv_heads, theme()), _labels(state, stage)),
        weights.tolist(),
        lambda given: decide("mix", format_weights(given)),
    )
    return weights


def _take_preset(known: dict[str, np.ndarray]) -> None:
    chosen = st.session_state.get("lab preset")
    if chosen in known:
        decide("mix", format_weights(known[chosen]))
    st.session_state["lab preset"] = None


def _presets(state: RunState, stage: int, task: str | None) -> dict[str, np.ndarray]:
    """Weights by the preset's name, those that this run has."""
    assert state.manifest is not None
    shape = state.manifest.shape
    found = {"All heads": np.ones(shape.heads), "No head": np.zeros(shape.heads)}
    known = best_reliability(state, stage)
    if known is not None and known.weights.any():
        found["By reliability"] = known.weights / known.weights.max()
    if task is not None:
        kept: dict[str, np.ndarray] = {}
        for row in rows(state, "importance", stage=stage, task=task):
            kept.setdefault(row["way"], np.zeros(shape.heads))[row["head"] - 1] = row["kept"]
        for way, weights in kept.items():
            found[f"Best pruned, by {way}"] = weights
        learned = rows(state, "head_weights", stage=stage, task=task, kind="learned")
        if learned:
            weights = np.zeros(shape.heads)
            for row in learned:
                weights[row["head"] - 1] = row["weight"]
            found["Learned weights"] = weights
    if shape.kv_heads < shape.heads:
        for number, group in enumerate(_groups(shape), start=1):
            found[f"Key/value group {number}"] = np.isin(np.arange(shape.heads), group).astype(float)
    if state.analysed:
        of_role: dict[str, list[int]] = {}
        for row in tables(state).pick("profiles", stage=stage, slicing=HEADS):
            for role in row["roles"] or ():
                if row["head"] and role in RULES:
                    of_role.setdefault(role, []).append(row["head"] - 1)
        for role, heads in of_role.items():
            found[f"Only {role} heads"] = np.isin(np.arange(shape.heads), heads).astype(float)
    return found


def _groups(shape: ModelShape) -> list[list[int]]:
    groups: dict[int, list[int]] = {}
    for head in range(shape.heads):
        groups.setdefault(shape.group_of(head), []).append(head)
    return list(groups.values())


def _labels(state: RunState, stage: int) -> list[str]:
    """What is said of each head: its role, topic and reliability, where they are known."""
    assert state.manifest is not None
    said = dict.fromkeys(range(1, state.manifest.shape.heads + 1), "")
    if state.analysed:
        for row in tables(state).pick("profiles", stage=stage, slicing=HEADS):
            if row["head"]:
                topic = f", {row['topic']}" if row["role"] == "selective" and row["topic"] else ""
                said[row["head"]] = f"{row['role'] or 'no role'}{topic}"
    known = best_reliability(state, stage)
    rates = [""] * len(said) if known is None else [f", {right_for(rate)}" for rate in known.rates[1:]]
    return [f"{words or STAGES[stage].name}{rate}" for words, rate in zip(said.values(), rates, strict=True)]
