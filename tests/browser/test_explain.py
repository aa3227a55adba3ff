"""The page that explains, in a real browser, over a small model that was trained here."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page, Route, expect

from assay.data.planted import PLANTED
from assay.data.text import TextOptions
from assay.intervene.edits import ACTS
from assay.models.config import Architecture, Training
from assay.models.recipes import Recipe, train
from assay.run.workbench import Workbench
from tests.browser.conftest import PATIENCE
from tests.browser.noticing import noticed
from tests.serve.counting_model import CountingModel
from tests.serving import served

pytestmark = pytest.mark.browser
TEXT = "The tailor sold a brown notebook and bought a kettle across from the new canal."
KETTLE = 9
HOSTILE = "<img src=x onerror=alert(1)> \u202eabc\u202c <script>alert(2)</script> good ';--"
WHY = "The answer is not linear in a stack."


@pytest.fixture(scope="module")
def stack() -> CountingModel:
    acts = dict.fromkeys(ACTS) | {"likeliest": WHY}
    return CountingModel(attention="stack", layers=3, heads=2, acts=acts, paired=True)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory, stack: CountingModel) -> Iterator[str]:
    whole = PLANTED["planted:keyword"](0)
    corpus = replace(whole, train=whole.train[:400], dev=whole.dev[:50])
    small = Architecture(embedding=16, hidden=8, alignment_size=8)
    made = train(corpus, Recipe(small, TextOptions(min_count=1), Training(epochs=5, learning_rate=0.02)))
    folder: Path = tmp_path_factory.mktemp("runs")
    with served({"small": Workbench(made, "small"), "stack": stack, "counted": CountingModel()}, folder) as found:
        yield found


@pytest.fixture
def view(browser: Browser) -> Iterator[Page]:
    """A page at which nothing may go wrong unseen."""
    context = browser.new_context(viewport={"width": 1400, "height": 900}, reduced_motion="reduce")
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    _, faults = noticed(page)
    yield page
    context.close()
    assert faults == []


def asked(address: str, text: str = TEXT, **more: str) -> str:
    return f"{address}/?" + "&".join(f"{name}={quote(value)}" for name, value in {"text": text, **more}.items())


def opened(page: Page, *place: str, **more: str) -> None:
    page.goto(asked(*place, **more))
    answered(page)


def answered(page: Page) -> None:
    """The attention that is shown is that of the text that was asked last."""
    expect(page.locator("#result:not(.old) #hands:not(.old) #moved .note")).not_to_be_empty()


def bar(page: Page, item: int) -> Locator:
    return page.locator(f'.item[data-item="{item}"] .bar')


def weights(page: Page) -> list[float]:
    return [float(each) for each in page.locator(".bar").evaluate_all("all => all.map(each => each.ariaValueNow)")]


def fields(page: Page) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}


def settled(page: Page, part: str) -> None:
    expect(page).to_have_url(re.compile(re.escape(part)))


def turn(page: Page) -> str:
    return page.locator("#turn").inner_text()


def test_a_typed_text_is_decided_and_explained(view: Page, address: str) -> None:
    view.goto(address)
    view.get_by_label("Text", exact=True).fill(TEXT)
    view.keyboard.press("Control+Enter")
    expect(view.locator("#decided")).to_contain_text("The model says kitchen with")
    assert view.locator("#probabilities li").all_inner_texts()[0].startswith("kitchen")
    chosen = view.locator("[name=explainers]:checked").count()
    assert view.locator("#grid tbody").first.locator("tr").count() == chosen > 5
    expect(view.locator("#moved .note")).to_have_text("This is the attention as it is.")
    assert sum(weights(view)) == pytest.approx(1, abs=0.01)
    assert fields(view) == {"model": "small", "text": TEXT}


@pytest.mark.parametrize("late", ["**/static/explain.js", "**/api/models"])
def test_a_key_that_is_pressed_before_the_page_is_ready_is_not_lost(view: Page, address: str, late: str) -> None:
    held: list[Route] = []
    view.route(late, lambda route: held.append(route))
    view.goto(address, wait_until="commit")
    view.get_by_label("Text", exact=True).fill(TEXT)
    while not held:
        view.wait_for_timeout(20)
    view.keyboard.press("Control+Enter")
    held[0].continue_()
    expect(view.locator("#decided")).to_contain_text("The model says kitchen with")


def test_phrases_are_drawn_where_they_are_asked_for(view: Page, address: str) -> None:
    opened(view, address)
    expect(view.locator("#phrases")).to_be_hidden()
    view.get_by_label("Phrases", exact=True).select_option("hedge")
    view.get_by_role("button", name="Explain", exact=True).click()
    expect(view.locator("#trees figure.tree tfoot th")).to_have_text([*TEXT.removesuffix(".").split(), "."])
    assert fields(view)["tree"] == "hedge"


def test_explainers_are_chosen_and_two_are_compared(view: Page, address: str) -> None:
    view.goto(address)
    view.get_by_text("Explainers: attention").click()
    for box in reversed(view.locator("[name=explainers]:checked").all()):
        box.uncheck()
    view.get_by_label("Text", exact=True).fill(TEXT)
    view.get_by_role("button", name="Explain", exact=True).click()
    expect(view.get_by_role("alert").first).to_have_text("Choose at least one explainer.")
    view.get_by_text("More", exact=True).click()
    expect(view.locator("[value=rollout]")).to_be_disabled()
    for name in ("attention", "leave_one_out", "occlusion"):
        view.locator(f"[name=explainers][value={name}]").check()
    view.get_by_role("button", name="Explain", exact=True).click()
    names = view.locator("#grid tbody tr .grid-name")
    expect(names).to_contain_text(["attention", "leave one out", "occlusion"])
    expect(names.first.locator("small")).to_contain_text("trust")
    view.get_by_text("shared", exact=True).click()
    expect(view.locator("#grid .grid")).to_have_attribute("data-scale", "shared")
    view.locator("#first").select_option("attention")
    view.locator("#second").select_option("occlusion")
    expect(view.locator("#grid tbody tr")).to_have_count(2)
    expect(view.locator("#agreed")).to_contain_text("kettle")
    settled(view, "compare=attention,occlusion")
    view.reload()
    expect(view.locator("#grid tbody tr")).to_have_count(2)
    expect(view.locator("#grid .grid")).to_have_attribute("data-scale", "shared")


def test_a_weight_is_pulled_by_the_mouse_and_the_numbers_follow(view: Page, address: str) -> None:
    opened(view, address)
    before, seen = weights(view), view.locator("#moved").inner_text()
    part = bar(view, 1)
    part.scroll_into_view_if_needed()
    box = part.bounding_box()
    assert box is not None
    across = box["x"] + box["width"] / 2
    view.mouse.move(across, box["y"] + box["height"] - 2)
    view.mouse.down()
    view.mouse.move(across, box["y"] + box["height"] * 0.4, steps=6)
    view.mouse.up()
    settled(view, "act=set&weights=1:0.")
    after = weights(view)
    assert after[1] > before[1] + 0.05
    assert sum(after) == pytest.approx(1, abs=0.01)
    others = [place for place in range(len(after)) if place != 1 and before[place] > 0.05]
    assert len(others) > 2
    assert len({round(after[place] / before[place], 1) for place in others}) == 1  # proportions stay
    assert view.locator("#moved").inner_text() != seen
    assert "TVD 0.000 of 1" not in view.locator("#moved").inner_text()
    assert "tailor" in view.locator("#moved .note").inner_text()
    expect(view.locator("#said")).to_contain_text("The answer moved")


def test_a_weight_is_set_by_the_keys(view: Page, address: str) -> None:
    opened(view, address)
    part = bar(view, 0)
    part.focus()
    now = weights(view)[0]
    steps = [("ArrowUp", 0.01), ("ArrowRight", 0.02), ("PageUp", 0.12), ("ArrowDown", 0.11), ("PageDown", 0.01)]
    for key, more in steps:
        view.keyboard.press(key)
        assert weights(view)[0] == pytest.approx(now + more, abs=2e-4)
    view.keyboard.press("End")
    expect(part).to_have_attribute("aria-valuetext", re.compile(r"^1\.000, observed .*, set by hand$"))
    expect(view.locator("#moved .note")).to_contain_text("has 100% of the attention")
    view.keyboard.press("Home")
    expect(part).to_have_attribute("aria-valuenow", "0.0000")
    view.keyboard.press("Shift+ArrowRight")
    expect(bar(view, 1)).to_be_focused()
    view.get_by_role("button", name="As observed").click()
    expect(part).to_have_attribute("aria-valuenow", f"{now:.4f}")


def test_a_weight_is_pulled_from_the_attention_that_is_shown(view: Page, address: str) -> None:
    opened(view, address, act="uniform")
    count = len(weights(view))
    bar(view, 3).focus()
    view.keyboard.press("End")
    view.keyboard.press("PageDown")
    settled(view, ",3:0.")
    expect(bar(view, 5)).to_have_attribute("aria-valuenow", f"{0.1 / (count - 1):.4f}")  # not as observed
    view.reload()
    expect(bar(view, 5)).to_have_attribute("aria-valuenow", f"{0.1 / (count - 1):.4f}")


def test_the_furthest_attention_lights_other_words_and_keeps_the_answer(view: Page, address: str) -> None:
    opened(view, address)
    before = weights(view)
    view.get_by_role("button", name="Furthest, same answer").click()
    expect(view.locator("#moved .badge")).to_have_text("exact")
    assert turn(view).startswith("Still kitchen")
    moved = [abs(one - other) for one, other in zip(before, weights(view), strict=True)]
    assert max(moved) > 0.1
    assert "TVD 0.0" in view.locator("#moved").inner_text()
    expect(view.get_by_role("button", name="Furthest, same answer")).to_have_attribute("aria-pressed", "true")
    expect(view.locator("#attend-command pre")).to_contain_text("--act furthest")


def test_the_smallest_set_turns_the_decision(view: Page, address: str) -> None:
    opened(view, address)
    view.get_by_role("button", name="Smallest set that flips").click()
    expect(view.locator("#turn")).to_contain_text("Now workshop")
    expect(view.locator("#turn")).to_contain_text("no longer kitchen")
    assert "kettle" in view.locator(".gone .word").all_inner_texts()
    assert view.locator("#moved .share").first.inner_text().count("%") == 2


def test_uniform_permuted_and_likeliest_attention(view: Page, address: str) -> None:
    opened(view, address)
    view.get_by_role("button", name="Uniform").click()
    settled(view, "act=uniform")
    assert max(weights(view)) - min(weights(view)) < 1e-3
    seen = set()
    for seed in ("0", "1"):
        view.get_by_role("button", name="Permute").click()
        settled(view, f"act=permute&seed={seed}")
        seen.add(tuple(weights(view)))
    assert len(seen) == 2
    view.locator("#likely").select_option("workshop")
    view.get_by_role("button", name="Make likely").click()
    expect(view.locator("#moved .note")).to_contain_text("can make workshop")
    settled(view, "act=likeliest&class=workshop")


def test_words_are_selected_by_click_and_by_key_and_erased(view: Page, address: str) -> None:
    opened(view, address)
    erase = view.get_by_role("button", name="Erase selected")
    expect(erase).to_have_attribute("aria-disabled", "true")
    expect(erase).to_have_accessible_description(re.compile("select words first"))
    view.locator(".word", has_text="kettle").click()
    bar(view, 1).focus()
    view.keyboard.press("Delete")
    expect(erase).to_have_text("Erase selected (2)")
    erase.click()
    settled(view, f"act=erase&items=1,{KETTLE}")
    assert weights(view)[1] == weights(view)[KETTLE] == 0
    assert view.locator(".gone .word").all_inner_texts() == ["tailor", "kettle"]
    view.reload()
    expect(view.locator(".picked .word")).to_have_text(["tailor", "kettle"])


def test_an_address_restores_the_view_and_back_goes_to_the_text_before(view: Page, address: str) -> None:
    opened(view, address)
    bar(view, 2).focus()
    view.keyboard.press("PageUp")
    settled(view, "act=set&weights=2:")
    first, told = weights(view), turn(view)
    view.reload()
    expect(view.locator("#turn")).to_have_text(told)
    assert weights(view) == first
    view.get_by_label("Text", exact=True).fill("A hammer and a saw.")
    view.get_by_role("button", name="Explain", exact=True).click()
    expect(view.locator("#decided")).to_contain_text("workshop")
    assert "act" not in fields(view)
    view.go_back()
    expect(view.get_by_label("Text", exact=True)).to_have_value(TEXT)
    answered(view)
    expect(view.locator("#turn")).to_have_text(told)
    assert weights(view) == first


def test_commands_are_copied(view: Page, address: str) -> None:
    opened(view, address, act="uniform")
    view.locator("#attend-command button").click()
    expect(view.locator("#attend-command button")).to_have_text("copied")
    assert view.evaluate("navigator.clipboard.readText()") == f"assay attend --model small --act uniform '{TEXT}'"


def waited(page: Page, held: list[Route], count: int) -> None:
    """Until so many requests are held."""
    for _ in range(500):
        if len(held) >= count:
            return
        page.wait_for_timeout(20)
    raise AssertionError(f"{len(held)} requests came, not {count}")


def test_only_the_newest_weight_is_asked_for_next(view: Page, address: str) -> None:
    opened(view, address)
    held: list[Route] = []
    view.route("**/api/attend", lambda route: held.append(route))
    bar(view, 0).focus()
    for _ in range(5):
        view.keyboard.press("PageUp")
    waited(view, held, 1)
    last = weights(view)[0]
    assert len(held) == 1
    held[0].continue_()
    waited(view, held, 2)
    assert json.loads(held[1].request.post_data or "")["act"]["weights"]["0"] == pytest.approx(last, abs=1e-4)
    held[1].continue_()
    settled(view, f"weights=0:{str(last)[:4]}")
    assert len(held) == 2


def test_a_busy_app_is_asked_again_and_a_refusal_is_told(browser: Browser, address: str) -> None:
    page = browser.new_page()
    sent: list[str] = []

    def busy(route: Route) -> None:
        sent.append(route.request.url)
        body = '{"detail": "Too many requests wait for the model; try again in a moment."}'
        route.fulfill(status=503, headers={"retry-after": "1"}, body=body)

    page.route("**/api/explain", busy)
    page.goto(asked(address))
    expect(page.get_by_role("status").first).to_contain_text("trying again in 1 seconds")
    expect(page.locator("#wrong")).to_contain_text("Too many requests wait for the model")
    assert len(sent) == 2
    page.unroute("**/api/explain")
    page.get_by_label("Text", exact=True).fill("?!")
    page.get_by_label("Text", exact=True).press("Control+Enter")
    page.locator("#model").select_option("counted")
    page.get_by_label("Text", exact=True).fill("refuse this")
    page.get_by_label("Text", exact=True).press("Control+Enter")
    expect(page.locator("#wrong")).to_have_text("This text is refused.")
    expect(page.locator("#working")).to_be_empty()
    page.close()


def test_in_a_stack_a_layer_a_head_and_an_attending_word_are_chosen(
    view: Page, address: str, stack: CountingModel
) -> None:
    opened(view, address, "a good film", model="stack", query="is it good?")
    assert view.get_by_label("Question or hypothesis").input_value() == "is it good?"
    view.get_by_label("Layer", exact=True).select_option("2")
    view.get_by_label("Head", exact=True).select_option("1")
    view.get_by_label("Attending word").select_option(label="good")
    settled(view, "layer=2&head=1&place=1")
    kind, text, query, act = stack.asked[-1]
    assert (kind, text, query, act.layer, act.head, act.place) == ("attend", "a good film", "is it good?", 2, 1, 1)
    unlikely = view.get_by_role("button", name="Make likely")
    expect(unlikely).to_have_accessible_description(re.compile(WHY))
    expect(view.locator("#reasons")).to_contain_text(WHY)
    asked_before = len(stack.asked)
    unlikely.click(force=True)
    view.get_by_role("button", name="Uniform").click()
    settled(view, "act=uniform&layer=2&head=1&place=1")
    assert len(stack.asked) == asked_before + 1
    view.reload()
    expect(view.get_by_label("Attending word")).to_have_value("1")


def test_a_long_text_keeps_few_bars_in_the_page_and_each_can_be_reached(view: Page, address: str) -> None:
    text = " ".join(f"word{number}" for number in range(1999)) + " good"
    view.goto(f"{address}/?model=counted")
    view.get_by_label("Text", exact=True).fill(text)
    view.keyboard.press("Control+Enter")
    expect(view.locator("#moved .note")).not_to_be_empty()
    assert 20 < view.locator(".item").count() < 250
    view.locator("#weights").evaluate("strip => strip.scrollTo(0, strip.scrollHeight)")
    last = bar(view, 1999)
    expect(last).to_be_visible()
    assert view.locator(".item").count() < 250
    last.focus()
    view.keyboard.press("End")
    expect(view.locator("#turn")).to_contain_text("Now yes (100.0%)")
    settled(view, "act=set")
    assert view.evaluate("location.search") == ""  # too long for a request: it stays behind the #
    view.reload()
    expect(view.locator("#turn")).to_contain_text("Now yes (100.0%)")
    assert view.get_by_label("Text", exact=True).input_value() == text


@pytest.mark.parametrize("model", ["small", "counted"])
def test_a_hostile_text_is_text(view: Page, address: str, model: str) -> None:
    opened(view, address, HOSTILE, model=model)
    assert view.get_by_label("Text", exact=True).input_value() == HOSTILE
    assert view.locator("main img, main script, iframe").count() == 0
    bar(view, 0).focus()
    view.keyboard.press("End")
    settled(view, "act=set")
    if model == "counted":
        assert "<img" in view.locator(".word").all_inner_texts()
        assert "\u202eabc\u202c" in view.locator(".word").evaluate_all("all => all.map(each => each.title)")


@pytest.mark.parametrize("width", [390, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_and_has_no_serious_fault_of_access(
    browser: Browser, address: str, width: int, scheme: str
) -> None:
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True, reduced_motion="reduce"
    )
    page = context.new_page()
    opened(page, address, act="flip", compare="attention,leave_one_out")
    page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    outside = page.locator("main :is(button, select, textarea, pre, p, .item)").evaluate_all(
        "all => all.filter(each => each.getBoundingClientRect().right > innerWidth + 1 && each.checkVisibility()"
        " && !each.closest('.unseen')).map(each => each.outerHTML)"
    )
    assert outside == []
    found = Axe().run(page).response["violations"]
    grave = [(each["id"], [node["html"] for node in each["nodes"]]) for each in found]
    assert [each for each, fault in zip(grave, found, strict=True) if fault["impact"] in ("serious", "critical")] == []
    context.close()
