"""The page of the service in a real browser, as a person uses it."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import muster
from muster.evaluation.replay import record
from muster.rng import episode_seeds
from tests.browser.conftest import CUSTOM, look_around, serious_findings

POLICY = "rescue-2x4-quad-dm"
EDGE = 8
"""Pixels that the viewer keeps free round the environment (viewer/canvas.js)."""


def cells(env: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Where agents and tasks are at the start: the middles of their cells."""
    batch_env = muster.make(env, 1)
    batch_env.reset(np.arange(1), episode_seeds(seed, np.arange(1)))
    scene = batch_env.renderer().scene(0)
    return np.asarray(scene.agents), np.asarray(scene.tasks)


def pixel(page: Any, place: Any, which: int = 0, side: float = 16.0) -> tuple[float, float]:
    """Where a place of a square environment is on the screen."""
    canvas = page.locator("canvas").nth(which)
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    scale = min((box["width"] - 2 * EDGE) / side, (box["height"] - 2 * EDGE) / side)
    left = box["x"] + (box["width"] - scale * side) / 2
    top = box["y"] + (box["height"] - scale * side) / 2
    return left + scale * float(place[0]), top + scale * float(place[1])


def assigned(page: Any, which: int = 0) -> list[int | None]:
    """The assignment that a canvas shows, from its description."""
    text = page.locator("canvas").nth(which).get_attribute("aria-label") or ""
    return [None if task == "none" else int(task) for task in re.findall(r"\d+ → (none|\d+)", text)]


def watch(page: Any, service: str, env: str = "rescue:5x10", seed: int = 2, beside: str = "closest") -> None:
    page.goto(f"{service}#watch?env={env}&seed={seed}&a={POLICY}&b={beside}&step=0")
    page.wait_for_selector(".player")
    # A canvas says what it shows once it is drawn.
    page.wait_for_function(
        "() => [...document.querySelectorAll('figure canvas')].every((board) => board.ariaLabel.includes('→'))"
    )


def skip_to_the_end(page: Any) -> None:
    page.locator(".player").wait_for()
    page.keyboard.press("End")
    page.locator(".end-card:not([hidden])").wait_for()


def test_two_policies_play_the_same_episode(page: Any, service: str):
    watch(page, service)
    names = [("learned on 2x4", POLICY), ("nearest first", "closest")]
    for which, (label, policy) in enumerate(names):
        assert page.locator("figcaption strong").nth(which).inner_text() == label
        assert page.locator("figcaption small").nth(which).inner_text() == policy
        assert assigned(page, which) == record(policy, "rescue:5x10", seed=2).assignments[0].tolist()
    page.get_by_role("button", name="Play (space)").click()
    page.wait_for_function("() => !document.querySelector('.clock').textContent.startsWith('step 0')")
    page.get_by_role("button", name="Pause (space)").click()


def test_a_policy_looks_ahead_beside_itself(page: Any, service: str):
    watch(page, service, beside=POLICY)
    page.get_by_label("Look-ahead").select_option("4")
    page.locator("form.bar button.main").click()
    page.locator("figcaption small", has_text=", 4 rollouts").wait_for()
    assert page.locator("figcaption small").nth(1).inner_text() == POLICY
    assert "4%20rollouts" in page.url.replace("+", "%20")


def test_scrubbing_stepping_and_keys(page: Any, service: str):
    watch(page, service)
    clock = page.locator(".clock")
    kept = record(POLICY, "rescue:5x10", seed=2)
    last = max(len(kept.assignments), len(record("closest", "rescue:5x10", seed=2).assignments))
    slider = page.get_by_role("slider", name="Step")
    slider.fill("3")
    slider.dispatch_event("change")
    assert clock.inner_text() == f"step 3 of {last}"
    assert assigned(page) == kept.assignments[3].tolist()
    page.locator("body").press("ArrowRight")
    assert clock.inner_text() == f"step 4 of {last}"
    page.locator("body").press("End")
    assert clock.inner_text() == f"step {last} of {last}"
    assert f"done in {len(kept.assignments)} steps" in page.locator(".status").first.inner_text()
    page.locator("body").press("Home")
    page.locator("body").press("+")
    assert page.get_by_label("Speed").input_value() == "2"
    page.locator("body").press("l")
    assert not page.get_by_label("lines").is_checked()
    page.locator("body").press("a")
    page.locator("body").press("a")
    page.locator(".panel h2", has_text="agent 1, by learned on 2x4").wait_for()


def test_clicking_an_agent_explains_it(page: Any, service: str):
    watch(page, service)
    agents, _ = cells("rescue:5x10", 2)
    page.mouse.click(*pixel(page, agents[1]))
    panel = page.locator(".panel")
    panel.locator("li.chosen").wait_for()
    task = record(POLICY, "rescue:5x10", seed=2).assignments[0][1]
    assert panel.locator("h2").inner_text() == "agent 1, by learned on 2x4"
    assert panel.locator("li.chosen strong").inner_text() == f"task {task}"
    assert panel.locator(".heat li").count() == 10
    # Another task has a higher score for this agent alone.
    assert "highest score" in panel.locator(".heat li").first.inner_text()
    assert "would cost" in panel.locator(".why").first.inner_text()


def test_equal_scores_are_one_row_and_procedures_have_a_line(page: Any, service: str):
    page.goto(f"{service}#watch?env=rescue:5x10&seed=2&a=closest&b=&step=2")
    page.locator(".player").wait_for()
    page.locator("body").press("a")
    panel = page.locator(".panel")
    panel.locator("li.chosen").wait_for()
    rows = panel.locator(".heat li", has_text="with the same score")
    assert rows.first.locator("strong").inner_text().count("task") >= 2
    assert panel.locator(".sentence").inner_text().startswith("Agent 0 gets task")
    # Its own task has the highest score, so the second one is the runner-up.
    assert "assigned" in panel.locator(".heat li").first.inner_text()
    assert "runner-up" in panel.locator(".heat li").nth(1).inner_text()
    for name, words in (("AMAX", "by itself"), ("LP", "beyond its capacity"), ("QUAD", "pair of tasks")):
        panel.get_by_role("button", name=name).click()
        panel.locator(".method", has_text=words).wait_for()


def test_the_same_scores_under_another_procedure(page: Any, service: str):
    watch(page, service)
    agents, _ = cells("rescue:5x10", 2)
    page.mouse.click(*pixel(page, agents[0]))
    panel = page.locator(".panel")
    panel.locator("li.chosen").wait_for()
    values = panel.locator(".value").all_inner_texts()
    panel.get_by_role("button", name="AMAX").click()
    panel.locator("button[data-value=amax][aria-pressed=true]").wait_for()
    assert panel.locator(".value").all_inner_texts() == values
    # AMAX takes the best score, which is the first of the list.
    assert "chosen" in (panel.locator(".heat li").first.get_attribute("class") or "")
    panel.get_by_role("button", name="Routes").click()
    panel.get_by_role("alert").wait_for()
    assert "from task to task" in panel.get_by_role("alert").inner_text()


def test_clicking_a_task_shows_who_could_and_who_does(page: Any, service: str):
    watch(page, service)
    _, tasks = cells("rescue:5x10", 2)
    assignment = record(POLICY, "rescue:5x10", seed=2).assignments[0].tolist()
    page.mouse.click(*pixel(page, tasks[assignment[2]]))
    panel = page.locator(".panel")
    panel.locator("li.chosen").wait_for()
    assert panel.locator("li.chosen strong").inner_text() == "agent 2"
    assert "1 of 1 used" in panel.inner_text()


def open_play(page: Any, service: str) -> tuple[np.ndarray, np.ndarray]:
    page.goto(f"{service}#play?env=rescue:5x10&seed=3")
    page.wait_for_function("() => document.querySelector('canvas.board')?.ariaLabel.includes('→')")
    return cells("rescue:5x10", 3)


def wait_for_another(page: Any, before: list[int | None]) -> list[int | None]:
    shown = ", ".join(f"{k} → {'none' if task is None else task}" for k, task in enumerate(before))
    page.wait_for_function("(text) => !document.querySelector('canvas.board').ariaLabel.includes(text)", arg=shown)
    return assigned(page)


def test_dragging_a_victim_changes_the_assignment(page: Any, service: str):
    agents, tasks = open_play(page, service)
    before = assigned(page)
    assert before == record(POLICY, "rescue:5x10", seed=3).assignments[0].tolist()
    # The victim of ambulance 0 goes to the far corner from it.
    corner = [0.5 if agents[0][axis] > 8 else 15.5 for axis in (0, 1)]
    page.mouse.move(*pixel(page, tasks[before[0]]))
    page.mouse.down()
    page.mouse.move(*pixel(page, [8, 8]), steps=4)
    page.mouse.move(*pixel(page, corner), steps=4)
    page.mouse.up()
    after = wait_for_another(page, before)
    assert after[0] != before[0]


def test_a_victim_moves_by_keys(page: Any, service: str):
    _, tasks = open_play(page, service)
    page.locator("canvas.board").focus()
    page.keyboard.press("t")
    page.locator(".panel h2", has_text="task 0").wait_for()
    page.keyboard.press("ArrowUp" if tasks[0][1] > 8 else "ArrowDown")
    page.wait_for_function("() => location.hash.includes('#play?s=')")
    with page.expect_download() as found:
        page.get_by_role("button", name="Save").click()
    moved = json.loads(Path(found.value.path()).read_text())["tasks"][0]
    assert abs(moved[1] - tasks[0][1]) == 1
    assert moved[0] == tasks[0][0]


def test_adding_removing_and_capacities(page: Any, service: str):
    agents, tasks = open_play(page, service)
    before = assigned(page)
    page.get_by_role("button", name="+ Agent").click()
    page.mouse.click(*pixel(page, tasks[0] + [1, 0] if tasks[0][0] < 8 else tasks[0] - [1, 0]))
    page.wait_for_function("() => document.querySelector('.status-line').textContent.startsWith('6 agents')")
    assert len(assigned(page)) == 6
    page.get_by_role("button", name="Remove").click()
    page.mouse.click(*pixel(page, agents[4]))
    page.wait_for_function("() => document.querySelector('.status-line').textContent.startsWith('5 agents')")
    page.get_by_role("button", name="Move", exact=True).click()
    page.mouse.click(*pixel(page, tasks[before[0]]))
    capacity = page.get_by_label("Capacity")
    capacity.fill("0")
    capacity.dispatch_event("change")
    page.wait_for_function(
        "(task) => !document.querySelector('canvas.board').ariaLabel.includes(`→ ${task}`)", arg=before[0]
    )


def test_a_situation_is_shared_as_a_link_and_as_a_file(page: Any, service: str, tmp_path: Path):
    open_play(page, service)
    with page.expect_download() as found:
        page.get_by_role("button", name="Save").click()
    kept = tmp_path / "situation.json"
    found.value.save_as(kept)
    assert json.loads(kept.read_text())["env"] == "rescue:5x10"
    before, link = assigned(page), page.url
    assert "#play?s=" in link
    page.goto("about:blank")
    page.goto(link)
    page.wait_for_function("() => document.querySelector('canvas.board')?.ariaLabel.includes('→')")
    assert assigned(page) == before
    kept.write_text('{"format": "another"}')
    page.locator("input[type=file]").set_input_files(kept)
    page.get_by_role("alert").filter(has_text="muster-situation-1").wait_for()


CSV = """name;<img src=x onerror=alert(1)>;Café "Süd"
"Ben; the second";3,5;1
Ada;4;
capacity;1;1
"""


def drop(page: Any, name: str, text: str) -> None:
    """A file let go over the table, as the browser would report it."""
    page.evaluate(
        """([name, text]) => {
          const data = new DataTransfer();
          data.items.add(new File([text], name, {type: "text/csv"}));
          const event = new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true});
          document.querySelector(".drop").dispatchEvent(event);
        }""",
        [name, text],
    )


def test_a_dropped_table_is_assigned_and_its_names_stay_text(page: Any, service: str):
    page.goto(f"{service}#assign")
    page.locator("table.scores").wait_for()
    drop(page, "scores.csv", CSV)
    page.get_by_role("button", name="Ben; the second").wait_for()
    assert page.locator("td.plan").all_inner_texts() == ['Café "Süd"', "<img src=x onerror=alert(1)>"]
    assert page.locator("img").count() == 0
    assert "Worth 5 in all, proven best" in page.locator(".verdict").inner_text()
    page.get_by_role("button", name="Ada").click()
    page.locator(".panel li.chosen").wait_for()
    assert page.locator(".panel li.chosen strong").inner_text() == "<img src=x onerror=alert(1)>"
    with page.expect_download() as found:
        page.get_by_role("button", name="Download CSV").click()
    lines = Path(found.value.path()).read_text().splitlines()
    assert lines[0] == "agent,task,score,why none"
    assert lines[2] == "Ada,<img src=x onerror=alert(1)>,4,"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a,b\n1,2,3", "row 2 has 3 cells, but the first has 2"),
        (",x,y\nAda,1,much", 'line 2, y: a score is a number or empty (forbidden), got "much"'),
        ("  \n", "this is empty"),
    ],
)
def test_a_table_that_is_none_gets_a_sentence(page: Any, service: str, text: str, complaint: str):
    page.goto(f"{service}#assign")
    page.locator("table.scores").wait_for()
    drop(page, "scores.csv", text)
    page.get_by_role("alert").filter(has_text=complaint).wait_for()
    assert page.locator("table.scores").count() == 0


def test_costs_are_minimised_and_every_agent_gets_a_task(page: Any, service: str):
    page.goto(f"{service}#assign")
    page.locator("table.scores").wait_for()
    page.get_by_label("costs: less is better").check()
    page.locator(".verdict", has_text="Costs").wait_for()
    # The example's costs, with capacities 1, 1 and 2: Ada and Cem 3 + 2.2 at the south, Ben 5.2 at the east.
    assert "Costs 10.4 in all, proven best" in page.locator(".verdict").inner_text()
    assert page.get_by_label("every agent gets a task").is_checked()
    page.get_by_role("button", name="Ada").click()
    page.locator(".panel li.chosen").wait_for()
    assert "the task with its lowest cost" in page.locator(".sentence").inner_text()
    assert page.locator(".panel li.chosen .value").inner_text() == "3"


def test_the_plan_stays_in_sight_of_a_wide_table(page: Any, service: str):
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{service}#assign")
    page.locator("table.scores").wait_for()
    drop(page, "scores.csv", "\n".join(",".join(str((7 * i + j) % 31) for j in range(30)) for i in range(3)))
    page.locator("td.plan", has_text="task 29").wait_for()
    for cell in page.locator("td.plan").all():
        box = cell.bounding_box()
        assert box["x"] + box["width"] <= 390


def test_a_curve_grows_while_a_run_learns(page: Any, service: str, runs: Path):
    place = runs / "first"
    place.mkdir(exist_ok=True)
    (place / "config.toml").write_text('env = "rescue:2x4"\nlearner = "es"\n')
    weights = [{"feature": "distance", "kind": "pair", "score": "h", "weight": -0.5, "effect": -1.25}]
    (place / "card.json").write_text(json.dumps({"weights": weights, "weights_in_words": "Near tasks first."}))
    log = place / "metrics.jsonl"
    rows = [json.dumps({"steps": 1000 * k, "outcome": 20 - k, "cpu_seconds": k}) + "\n" for k in range(8)]
    log.write_text("".join(rows[:4]))
    page.goto(f"{service}#learn")
    page.locator("svg polyline.line").wait_for()
    points = "() => document.querySelector('svg polyline.line').getAttribute('points').split(' ').length"
    assert page.evaluate(points) == 4
    log.write_text("".join(rows))
    page.wait_for_function(f"{points} === 8")
    assert "learning" in page.locator(".run").inner_text()
    assert "steps (fewer is better)" in page.locator(".chart-box").inner_text()
    # The run ends: its best baseline is drawn, and the pointer compares.
    (place / "summary.json").write_text(
        json.dumps({"baselines": {"closest": {"mean": 15.0}, "lp-distance": {"mean": 12.4}}})
    )
    page.locator("svg .level").wait_for(state="attached")
    assert "lp-distance, 12.4" in page.locator("svg").text_content()
    page.get_by_text("About “first”").click()
    assert "Near tasks first." in page.locator(".card").inner_text()
    assert page.locator(".card td").all_inner_texts() == ["distance (pair)", "−0.5", "−1.3"]
    page.locator("svg").hover()
    assert "first" in page.locator(".compare").inner_text()


def test_without_runs_the_page_gives_a_command_that_begins_one(page: Any, service: str, runs: Path, tmp_path: Path):
    """The command as it is given, but for the time that it takes."""
    for run in runs.iterdir():
        run.rename(tmp_path / run.name)
    page.goto(f"{service}#learn")
    command = page.locator(".state code").inner_text()
    done = subprocess.run(shlex.split(command.replace("--minutes 1 ", "--steps 4000 ")), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    page.locator(".run", has_text="rescue:2x4").wait_for()


def test_a_custom_environment_is_drawn_through_its_scene(page: Any, service: str):
    page.goto(f"{service}#watch?env={CUSTOM}&a=worth&b=nearest")
    skip_to_the_end(page)
    returns = [record(policy, CUSTOM).outcome for policy in ("worth", "nearest")]
    better = "Worth" if returns[0] > returns[1] else "Nearest"
    assert page.locator(".end-card h2").inner_text().startswith(f"{better} wins by")
    assert "served" in page.locator(".status").first.inner_text() + page.locator(".legend").inner_text()
    page.keyboard.press("Home")
    look_around(page, "custom")


def test_an_environment_that_is_not_there_gets_a_sentence_and_another_try(page: Any, service: str):
    watch(page, service)
    page.get_by_label("Size and settings").fill("rescue:2x")
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_role("alert").filter(has_text="rescue takes").wait_for()
    page.get_by_label("Size and settings").fill("rescue:3x4")
    page.get_by_role("button", name="Try again").click()
    page.locator(".player").wait_for()


def test_a_service_that_is_away_is_said_and_asked_again(page: Any, service: str):
    page.route("**/watch/environments", lambda route: route.abort())
    page.goto(service)
    page.get_by_role("alert").filter(has_text="does not answer").wait_for()
    look_around(page, "away")
    page.unroute("**/watch/environments")
    page.get_by_role("button", name="Try again").click()
    page.locator(".player").wait_for()


def test_the_page_opens_playing_and_says_who_won(page: Any, service: str):
    """What a visitor sees without a click: two policies race, and the better one is named with the margin."""
    page.goto(service)
    page.locator(".end-card:not([hidden])").wait_for()
    assert page.locator("h1").count() == 1
    assert page.locator("h1").inner_text().startswith("Search and rescue")
    steps = [len(record(policy, "rescue:8x15").assignments) for policy in (POLICY, "closest")]
    card = page.locator(".end-card")
    assert card.locator("h2").inner_text() == f"Learned on 2x4 wins by {steps[1] - steps[0]} steps"
    assert f"{steps[0]} steps against {steps[1]}" in card.inner_text()
    assert "was never trained on 8x15" in page.locator("p.about").first.inner_text()
    # Boards, race, verdict and legend are on the first screen.
    for part in (page.locator(".race"), card, page.locator(".legend")):
        place = part.bounding_box()
        assert place["y"] + place["height"] <= 900
    # The same policies run on every size.
    for size in page.get_by_role("navigation", name="Sizes").get_by_role("link").all():
        assert f"a={POLICY}&b=closest" in (size.get_attribute("href") or "")
    # Both lines of the race have come down to nothing left.
    assert page.locator(".race-words b").all_inner_texts() == ["0", "0"]
    look_around(page, "watch-end")
    card.get_by_role("link", name="Now 100x200").click()
    page.locator("h1", has_text="rescue:100x200").wait_for()
    assert f"a={POLICY}" in page.url
    page.go_back()
    skip_to_the_end(page)
    page.get_by_role("link", name="Your turn: drag one").click()
    page.wait_for_function("() => document.querySelector('canvas.board')?.ariaLabel.includes('→')")
    assert assigned(page) == record(POLICY, "rescue:8x15").assignments[0].tolist()


def test_waiting_is_shown(page: Any, service: str):
    """Until the episode comes there is a sentence, not an empty box."""
    held: list[Any] = []
    page.route("**/watch/episode", lambda route: held.append(route))
    page.goto(service)
    page.get_by_role("status").filter(has_text="Running rescue:8x15").wait_for()
    held[0].continue_()
    page.locator(".player").wait_for()
    assert page.get_by_role("status").filter(has_text="Running").count() == 0


def test_agents_in_one_place_are_fanned_or_counted_and_nothing_is_too_small(page: Any, service: str):
    page.goto(f"{service}#assign")
    found = page.evaluate(
        """async () => {
          const { fit, momentOf, radiusIn } = await import("./viewer/canvas.js");
          const stage = { bounds: [0, 0, 100, 100], looks: [{ shape: "van", size: 0.38 }] };
          const view = fit(stage.bounds, 480, 480);
          const field = (columns, value) => ({ rows: 1, columns, at: () => value });
          const moment = (agents) => momentOf({
            last: 0, shots: [], agent: () => [5, 5], task: () => [9, 9],
            fields: {
              agent_alive: field(agents, 1), task_alive: field(1, 1), assignment: field(agents, 0),
              task_load: field(1, 0), task_crowded: field(1, 0), agent_looks: field(agents, 0), task_looks: field(1, 0),
            },
          }, stage, 0, view).agents;
          const small = fit(stage.bounds, 165, 165);
          return {
            few: moment(3).map(({ at }) => at), many: moment(7).map(({ stack }) => stack && stack.of),
            wide: radiusIn(stage, view, 600)(stage.looks[0]), narrow: radiusIn(stage, small, 600)(stage.looks[0]),
          };
        }"""
    )
    places = np.array(found["few"])
    apart = np.linalg.norm(places[:, None] - places, axis=-1)[np.triu_indices(3, 1)]
    assert apart.min() > 4
    assert found["many"] == [7] * 7
    assert found["wide"] >= 5
    assert found["narrow"] >= 2.5


def test_reduced_motion_opens_paused(page: Any, service: str):
    page.emulate_media(reduced_motion="reduce")
    page.goto(service)
    page.locator(".player").wait_for()
    page.wait_for_timeout(300)
    assert page.locator(".clock").inner_text().startswith("step 0 ")


def test_a_link_with_an_unknown_policy_says_so(page: Any, service: str):
    page.goto(f"{service}#watch?env=rescue:2x4&a=rescue-9x9-quad-dm&b=closest")
    page.get_by_role("alert").filter(has_text="rescue-9x9-quad-dm").wait_for()
    page.locator(".player").wait_for()
    assert page.locator("figcaption small").first.inner_text() == POLICY
    page.goto(f"{service}#wach")
    page.get_by_role("alert").filter(has_text="no view “wach”").wait_for()


def test_a_narrow_window_shows_boards_and_play_above_the_fold(page: Any, service: str):
    page.set_viewport_size({"width": 390, "height": 664})
    page.goto(service)
    page.locator(".player").wait_for()
    for box in (page.locator("canvas").nth(0), page.locator("canvas").nth(1), page.locator(".controls button.main")):
        place = box.bounding_box()
        assert place["y"] + place["height"] <= 664
    assert not page.get_by_label("Size and settings").is_visible()
    page.get_by_text("Change environment").click()
    assert page.get_by_label("Size and settings").is_visible()


def test_two_hundred_agents_play(page: Any, service: str):
    page.goto(f"{service}#watch?env=rescue:200x400,grid=100&a={POLICY}&b=closest")
    page.wait_for_function("() => Number(/\\d+/.exec(document.querySelector('.clock')?.textContent ?? '0')) >= 2")
    page.get_by_role("button", name="Pause (space)").click()
    look_around(page, "watch-large")


READY = {"watch": ".player", "play": "canvas.board", "learn": ".state code, .run", "assign": "table.scores"}


def open_view(page: Any, service: str, view: str) -> None:
    page.goto(f"{service}#{view}")
    page.locator(READY[view]).first.wait_for()
    if view == "watch":
        skip_to_the_end(page)


@pytest.mark.parametrize("view", READY)
def test_every_view_fits_its_window(page: Any, service: str, view: str):
    """In light and dark, wide and narrow."""
    open_view(page, service, view)
    page.wait_for_load_state("networkidle")
    look_around(page, view)


@pytest.mark.parametrize("view", READY)
def test_axe_finds_nothing_serious(page: Any, service: str, view: str):
    """Neither at first nor with what a click opens."""
    open_view(page, service, view)
    found = serious_findings(page)
    if view in ("watch", "play"):
        page.locator("canvas").first.focus()
        page.keyboard.press("Home")
        page.keyboard.press("a")
        page.locator(".panel li.chosen").wait_for()
    if view == "assign":
        page.get_by_role("button", name="Ada").click()
        page.locator(".panel li.chosen").wait_for()
    assert found + serious_findings(page) == []


def test_a_battle_with_shots_can_be_watched(page: Any, service: str):
    page.goto(f"{service}#watch?env=battle:w15v17&seed=1&a=battle-w15v17-quad-dm&b=c")
    page.wait_for_function("() => document.querySelector('canvas')?.ariaLabel.includes('→')")
    page.get_by_role("slider", name="Step").fill("14")
    page.get_by_role("slider", name="Step").dispatch_event("change")
    colours = page.evaluate(
        """() => {
          const canvas = document.querySelector("canvas");
          const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
          const seen = new Set();
          for (let k = 0; k < data.length; k += 4) seen.add(data[k] << 16 | data[k + 1] << 8 | data[k + 2]);
          return seen.size;
        }"""
    )
    assert colours > 100
    look_around(page, "battle")
