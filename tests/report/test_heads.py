"""The page of head probes: its words follow from its numbers, and nothing in it can harm."""

from __future__ import annotations

import copy
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from rich.console import Console
from rich.text import Text

from assay.document import Headline, Table
from assay.errors import AssayError
from assay.probes import drawings
from assay.probes import drawings as links
from assay.probes.drawings import Shade, bar, best_directions, ratio, read, relations, square
from assay.probes.probe_page import brief, caveats, document, headline, leading, step
from assay.report import html
from assay.report.console import shown
from assay.report.save import FORMS, save
from tests.report.probed import HOSTILE, NAMES, synthetic_probe

SENTENCE: dict[str, Any] = {
    "words": ["she", "saw", "dogs", "."],
    "governors": [1, -1, 1, 1],
    "relations": ["nsubj", "root", "obj", "punct"],
}


class Tags(HTMLParser):
    """Collects tags, and checks that those that are opened are closed in their order."""

    VOID = ("meta", "link", "br", "rect", "line", "path", "circle")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))


def render(probe: dict[str, Any]) -> str:
    return html.render(document(probe))


def told(probe: dict[str, Any]) -> str:
    """What a terminal shows."""
    console = Console(width=80)
    with console.capture() as capture:
        for block in shown(brief(probe)):
            console.print(block, soft_wrap=isinstance(block, Text))
    return str(capture.get())


@pytest.fixture(scope="module")
def probe() -> dict[str, Any]:
    return synthetic_probe()


@pytest.fixture(scope="module")
def page(probe: dict[str, Any]) -> str:
    return render(probe)


def _with(probe: dict[str, Any], **changes: float) -> dict[str, Any]:
    """The probe with the same numbers in every relation."""
    made = copy.deepcopy(probe)
    for each in made["sections"]["relations"]:
        each.update(changes)
    return made


def test_the_headline_counts_relations_whose_interval_lies_above_offset_and_control(probe: dict[str, Any]) -> None:
    beaten = _with(probe, accuracy=0.4, low=0.3, high=0.5, offset_accuracy=0.3, control_high=0.1)
    assert headline(beaten).startswith("No head finds a relation better")
    assert "for 0 of 12 relations" in headline(beaten)
    held = beaten["sections"]["relations"]
    held[1]["low"] = 0.31  # the second direction of the first relation
    assert headline(beaten).startswith("Some relations have a head")
    assert "for 1 of 12 relations" in headline(beaten)
    held[1]["control_high"] = 0.31
    assert "0 of them also beat the random control" in headline(beaten)
    every = _with(probe, accuracy=0.9, low=0.8, high=1.0, offset_accuracy=0.3, control_high=0.1)
    assert headline(every).startswith("Every relation has a head")
    assert "for 12 of 12 relations" in headline(every)


def test_all_relations_together_are_not_counted_as_one(probe: dict[str, Any]) -> None:
    more = copy.deepcopy(probe)
    more["sections"]["relations"].append({**more["sections"]["relations"][0], "relation": "any"})
    assert "of 12 relations" in headline(more)
    assert "any relation" in render(more)


def test_the_surest_lead_comes_first_and_is_told(probe: dict[str, Any]) -> None:
    found = relations(probe)
    leads = [each.low - each.offset_accuracy for each in found]
    assert leads == sorted(leads, reverse=True)
    assert len(best_directions(found)) == len(NAMES)
    told = leading(found)
    assert told is not None
    assert f"head {found[0].head} of layer {found[0].layer}" in told
    assert leading(relations(synthetic_probe(leads=False))) is None


@pytest.mark.parametrize(
    ("offset", "words"),
    [(-1, "the next word to the left"), (2, "the 2nd word to the right"), (-3, "the 3rd word to the left")],
)
def test_offsets_are_told_in_words(offset: int, words: str) -> None:
    assert step(offset) == words


def test_few_words_and_many_comparisons_are_caveats(probe: dict[str, Any]) -> None:
    told = " ".join(caveats(_with(probe, n=12, low=0.8, offset_accuracy=0.2)))
    assert "(n = 12)" in told
    assert "With 24 comparisons" in told
    assert "commonest class" not in told
    weak = copy.deepcopy(probe)
    weak["sections"]["importance"]["accuracy"] = 0.52
    assert any("commonest class" in sentence for sentence in caveats(weak))


def test_what_is_asked_of_a_head_follows_from_its_title() -> None:
    assert links.answers(SENTENCE, "obj, to governor") == {2: {1}}
    assert links.answers(SENTENCE, "nsubj, to dependent") == {1: {0}}
    assert links.answers(SENTENCE, "any, to governor") == {0: {1}, 2: {1}}
    assert links.answers(SENTENCE, "any, to dependent") == {1: {0, 2}}
    assert links.answers(SENTENCE, "something else") == {0: {1}, 1: {0, 2, 3}, 2: {1}, 3: {1}}


def test_lines_have_the_weights_as_widths_and_go_where_they_should() -> None:
    weights = [[0.9, 0.01, 0.0, 0.0], [0.2, 0.0, 0.0, 0.0], [0.0, 0.5, 0.3, 0.0], [None, 0.03, 0.0, 1.0]]
    drawn = drawings.lines(SENTENCE["words"], weights, links.answers(SENTENCE, "obj, to governor"), "label")
    root = ElementTree.fromstring(drawn)
    groups = {group.get("class"): list(group) for group in root.iter("g")}
    assert {kind: len(found) for kind, found in groups.items()} == {"rest": 3, "other": 1, "true": 1}
    (line,) = groups["true"]
    assert line.get("stroke-width") == f"{0.5 + 4.5 * 0.5:.1f}"
    height = {place: str(drawings.TOP + drawings.TALL * place) for place in range(4)}
    assert (line.get("y1"), line.get("y2")) == (height[2], height[1])
    bold = [text.text for text in root.iter("text") if text.get("class") == "asked"]
    assert bold == ["dogs"]
    assert [path.get("class") for path in root.iter("path")] == ["tick"]


def test_a_word_that_attends_elsewhere_gets_a_cross() -> None:
    weights = [[0.0] * 4, [0.0] * 4, [0.6, 0.3, 0.9, 0.0], [0.0] * 4]
    asked = links.answers(SENTENCE, "obj, to governor")
    assert links.strongest(weights, 2) == 0  # itself does not count
    assert not links.hit(asked, weights, 2)
    assert links.strongest(weights, 1) is None
    assert 'class="wrong"' in drawings.lines(SENTENCE["words"], weights, asked, "label")


def test_squares_have_a_cell_for_each_shade_and_a_ring_at_the_chosen_head() -> None:
    root = ElementTree.fromstring(square([[0.0, 0.5], [1.0, None]], "label", ringed=(1, 0)))
    paths = {path.get("class"): path.get("d") for path in root.iter("path")}
    assert set(paths) == {"p4", "p8"}
    assert paths["p4"] == "M38 16h13v13h-13z"
    assert paths["p8"] == "M24 30h13v13h-13z"
    (ring,) = [part for part in root.iter("rect") if part.get("class") == "ring"]
    assert (ring.get("x"), ring.get("y")) == ("22.5", "28.5")


def test_shades_are_relative_and_clipped() -> None:
    shade = Shade(0.0, 2.0)
    assert [shade.level(value) for value in (-9.0, -1.0, 0.0, 1.0, 2.0, 5.0, None, float("nan"))] == [
        -8,
        -4,
        0,
        4,
        8,
        8,
        0,
        0,
    ]
    assert ratio(0.4, 0.1) == pytest.approx(2)
    assert ratio(0.05, 0.1) == pytest.approx(-1)
    assert ratio(0.0, 0.1) == pytest.approx(-6)
    assert str(ratio(0.1, 0.0)) == "nan"


def test_a_bar_has_the_interval_the_offset_and_the_control_in_their_places(probe: dict[str, Any]) -> None:
    held = _with(probe, accuracy=0.5, low=0.4, high=0.6, offset_accuracy=0.25, control_accuracy=0.1)
    root = ElementTree.fromstring(bar(relations(held)[0]))
    found = {part.get("class"): part for part in root}
    assert (found["interval"].get("x1"), found["interval"].get("x2")) == ("80.0", "120.0")
    assert found["found"].get("cx") == "100.0"
    assert found["offset"].get("x1") == "50.0"
    assert str(found["control"].get("d")).startswith("M16.5 ")
    assert "head 50.0 %" in str(root.get("aria-label"))


def test_hostile_words_stay_text(page: str) -> None:
    assert HOSTILE not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<b>out</b>" not in page
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    names = {name for name, _ in tags.seen}
    assert not names & {"script", "iframe", "img", "object", "embed", "form"}
    assert not [attributes for _, attributes in tags.seen if any(key.startswith("on") for key in attributes)]


def test_nothing_is_asked_of_the_network(page: str) -> None:
    assert "default-src 'none'" in page
    links_out = re.findall(r'(?:href|src)="([^"]*)"', page)
    assert all(link.startswith("#") or link == "data:," for link in links_out)
    assert re.findall(r"url\((?!#)", page) == []


def test_every_part_has_its_place_and_every_link_a_target(page: str) -> None:
    for name in ("squares", "drawn", "speech", "coreference", "negation", "pairs", "importance", "concepts", "limits"):
        assert f'<section id="{name}"' in page
    targets = set(re.findall(r'id="([^"]*)"', page))
    assert set(re.findall(r'href="#([^"]*)"', page)) <= targets
    for author in ("Clark", "Htut", "Reif", "Hewitt", "Michel", "Kim"):
        assert author in page
    assert page.count("How to read this.") == 9


def test_what_is_told_has_the_control_beside_it(page: str) -> None:
    plain = " ".join(re.sub(r"<[^>]+>", " ", page).replace("\u00a0", " ").split())
    assert "61.0 % of 2,000 pronouns (95 % interval 59.0 to 63.0 %), more often than taking the nearer name" in plain
    assert "not surely more often than taking the next word to the left: 21.0 %. The control reaches 6.0 %" in plain
    assert "84.0 % of 9,000 pairs, where the commonest answer alone gives 50.0 % and the control 52.0 %" in plain
    assert "Pruning the least important 40 % of the heads costs at most one point" in plain


def test_the_same_probe_gives_the_same_page(probe: dict[str, Any], page: str) -> None:
    assert render(json.loads(json.dumps(probe))) == page


@pytest.mark.parametrize("kept", ["relations", "speech", "coreference", "negation", "pairs", "importance"])
def test_a_page_of_one_section_stands_alone(probe: dict[str, Any], kept: str) -> None:
    alone = {**probe, "sections": {kept: probe["sections"][kept]}, "examples": []}
    alone["left_out"] = {"negation": "There is no <b>file</b>."}
    made = render(alone)
    assert "Not probed" in made
    assert "&lt;b&gt;file&lt;/b&gt;" in made
    assert "Heads drawn" not in made
    assert ("#squares" in made) == (kept == "relations")


def test_numbers_that_are_missing_are_dashes(probe: dict[str, Any]) -> None:
    holes = _with(probe, accuracy=None, low=None, high=None, control_accuracy=None, control_high=None)
    for each in holes["sections"]["relations"]:
        each["every"] = [[None] * 12] * 6
    holes["sections"]["pairs"]["relations"] = dict.fromkeys(("accuracy", "low", "high", "majority", "control")) | {
        "n": 0,
        "classes": [],
    }
    made = render(holes)
    assert "nan" not in re.sub(r"<[^>]+>", " ", made).lower().split()
    assert "None" not in re.sub(r"<[^>]+>", " ", made).split()


def test_a_page_of_a_large_model_is_small_enough_to_send() -> None:
    many = tuple(f"relation-{number}" for number in range(37))
    base = render(synthetic_probe(layers=12, heads=12, relations=many))
    assert len(base.encode()) < 2_000_000
    assert "The same as numbers" in base
    large = render(synthetic_probe(layers=24, heads=16, relations=many))
    assert len(large.encode()) < 3_000_000
    assert "too many numbers for a page" in large


def test_the_terminal_shows_each_relation_once_within_eighty_columns(probe: dict[str, Any]) -> None:
    lead, table, *_ = brief(probe)
    assert isinstance(lead, Headline) and isinstance(table, Table)
    text = told(probe)
    assert "…" not in text
    assert all(name in text for name in NAMES)
    assert [row.cells[0] for row in table.rows] == [each.title for each in best_directions(relations(probe))]
    assert not any(isinstance(block, Table) for block in brief({**probe, "sections": {}}))


def test_sections_left_out_for_one_reason_share_a_sentence(probe: dict[str, Any]) -> None:
    missing = {"speech": "No file.", "pairs": "No file.", "importance": "No corpus."}
    text = told({**probe, "sections": {}, "left_out": missing})
    assert "Not probed: parts of speech and pairs of words. No file.\n" in text
    assert "Not probed: head importance. No corpus.\n" in text


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_written(probe: dict[str, Any], form: str, tmp_path: Path) -> None:
    path = tmp_path / f"probe.{form}"
    save(document(probe), path)
    assert path.stat().st_size > 1000


def test_a_file_that_is_no_probe_is_one_clear_sentence(tmp_path: Any, probe: dict[str, Any]) -> None:
    place = tmp_path / "probe.json"
    with pytest.raises(AssayError, match="make it with 'assay probe'"):
        read(place)
    place.write_text("{")
    with pytest.raises(AssayError, match="damaged"):
        read(place)
    place.write_text('{"format": "other"}')
    with pytest.raises(AssayError, match="is not a probe of heads"):
        read(place)
    place.write_text(json.dumps(probe))
    assert read(place) == probe


def test_a_probe_of_the_earlier_format_is_counted_from_0(tmp_path: Path) -> None:
    probe = synthetic_probe()
    earlier = _counted_from_1(dict(probe)) | {"format": "assay-probe-1"}
    (tmp_path / "probe.json").write_text(json.dumps(earlier), encoding="utf-8")
    assert read(tmp_path / "probe.json") == json.loads(json.dumps(probe))


def _counted_from_1(held: Any) -> Any:
    """The same probe as an earlier version wrote it."""
    if isinstance(held, dict):
        shifted = {key: _counted_from_1(each) for key, each in held.items()}
        known = "head" in held and "layer" in held
        return shifted | ({"layer": held["layer"] + 1, "head": held["head"] + 1} if known else {})
    return [_counted_from_1(each) for each in held] if isinstance(held, list | tuple) else held
