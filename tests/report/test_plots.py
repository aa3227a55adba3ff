from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from assay.audits import AUDITS as TODAY
from assay.errors import AssayError
from assay.records import Record
from assay.report import audit
from assay.report.canvas import CLASS_COLOURS, GRADE_COLOURS, finish, layers, save, sheet, svg
from assay.report.figures import KINDS, figures
from assay.report.figures import figure as figure_of
from assay.report.sections import MOST, captions
from assay.report.text_figures import classes, column, outlines, quantiles
from assay.stories import story_of
from assay.writing import number, significance
from tests.report.synthetic import FAITHFUL, remade
from tests.report.trained import MODELS

SOURCES = {"verdict": "deciding"} | {
    drawing.name: name for name, audit in TODAY.items() for drawing in story_of(audit).drawings if drawing.kind in KINDS
}
AUDITS = (
    "deciding",
    "permutation",
    "adversary",
    "layers",
    "single_weight",
    "minimal_set",
    "plausibility",
    *FAITHFUL,
    *MODELS,
)
TAU = "tau:attention~gradient"


def contrast(one: str, other: str) -> float:
    """WCAG 2 contrast of two colours."""

    def luminance(colour: str) -> float:
        parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_the_outline_of_a_histogram_follows_the_counts_of_each_class(record: Record) -> None:
    data = column(record, "agreement", TAU)
    assert data is not None
    edges = np.linspace(-1, 1, 21)
    labels = classes(record, data.predicted)
    rows = outlines(data, labels, edges)
    table = record.audit_rows("agreement").to_pylist()
    for which, label in labels.items():
        corners = [(row["x"], row["share"]) for row in rows if row["class"] == label]
        values = [row[TAU] for row in table if row["predicted"] == which]
        assert corners[0][1] == corners[-1][1] == 0
        # corners come in pairs: the left and the right end of each bin's top
        for (left, share), (right, same) in zip(corners[1:-1:2], corners[2:-1:2], strict=True):
            inside = sum(left <= value < right or value == right == 1 for value in values)
            assert share == same == pytest.approx(inside / len(values))
        assert sum(share for _, share in corners[1:-1:2]) == pytest.approx(1)


def test_quarters_hold_the_quantiles_of_their_examples(record: Record) -> None:
    data = column(record, "permutation", "median_tvd")
    assert data is not None
    labels = classes(record, data.predicted)
    table = record.audit_rows("permutation").to_pylist()
    boxes = quantiles(data, labels)
    assert boxes
    for box in boxes:
        which = next(key for key, label in labels.items() if label == box["class"])
        low, high = (float(end) for end in str(box["quarter"]).split(" – "))
        inside = [r for r in table if r["predicted"] == which and low <= r["max_attention"] < high]
        values = sorted(row["median_tvd"] for row in inside)
        assert box["size"] == f"n = {len(values)}"
        assert box["median"] == pytest.approx(np.median(values))
        assert box["low"] <= box["first"] <= box["median"] <= box["third"] <= box["high"]
        assert values[0] <= box["low"]
        assert box["high"] <= values[-1]


def test_values_that_are_no_numbers_are_left_out(record: Record) -> None:
    place = record.instances.column_names.index(TAU)
    values = record.instances[TAU].to_pylist()
    spoilt = [float("nan") if row % 6 == 0 and value is not None else value for row, value in enumerate(values)]
    broken = Record(record.summary, record.instances.set_column(place, TAU, [spoilt]), record.examples)
    data = column(broken, "agreement", TAU)
    assert data is not None
    assert np.isfinite(data.values).all()
    assert len(data.values) == sum(value is not None and np.isfinite(value) for value in spoilt)


@pytest.fixture(scope="module")
def every(make: Callable[..., Record]) -> Record:
    """A record of all audits, which no corpus allows at once."""
    return make(count=30, audits=AUDITS)


@pytest.mark.parametrize("name", SOURCES)
def test_a_figure_is_there_when_its_audit_is_and_only_then(name: str, every: Record) -> None:
    assert figure_of(every, name) is not None
    # some numbers two audits have
    left = {SOURCES[name]} | {"verdict": {"truth"}, "tvd_jsd": {"seed_variance"}}.get(name, set())
    assert figure_of(without(every, left), name) is None


def without(record: Record, audits: set[str]) -> Record:
    """The record as it would be if some audits had not been run."""
    findings = [row for row in record.summary["findings"] if row["audit"] not in audits]
    kept = [audit not in audits for audit in record.instances["audit"].to_pylist()]
    return remade(record, summary=record.summary | {"findings": findings}, instances=record.instances.filter(kept))


@pytest.mark.parametrize("name", SOURCES)
def test_svg_names_itself_scales_and_fetches_nothing(name: str, every: Record) -> None:
    figure = figure_of(every, name)
    assert figure is not None
    text = svg(figure)
    root = ElementTree.fromstring(text)
    title = root.find("{http://www.w3.org/2000/svg}title")
    assert root.get("role") == "img"
    assert title is not None
    assert title.text
    assert root.get("aria-labelledby") == title.get("id")
    assert root.get("viewBox")
    assert "http" not in text.replace("http://www.w3.org/", "")
    assert "currentColor" in text
    assert len(text) < 60_000


def test_figures_of_one_page_share_no_id_and_stay_the_same(every: Record, drawn_anew: None) -> None:
    found = list(figures(every).values())
    first = [svg(figure) for figure in found]
    names = [name for text in first for name in re.findall(r'\bid="([^"]+)"', text)]
    assert len(names) == len(set(names)) >= len(first)
    assert first[:5] == [svg(figure) for figure in found[:5]]


def shown(figure: object) -> list[str]:
    """All words of a figure."""
    root = ElementTree.fromstring(svg(figure))  # type: ignore[arg-type]
    return [node.text or "" for node in root.iter() if node.tag.endswith("}text")]


def test_dots_stand_in_the_order_of_the_means_with_their_numbers(every: Record) -> None:
    found = [f for f in every.findings if (f.audit, f.measure, f.group) == ("erasure", "comprehensiveness_gain", "all")]
    found.sort(key=lambda f: -f.mean)
    words = shown(figure_of(every, "erasure"))
    assert [word for word in words if word in {f.subject for f in found}] == [f.subject for f in found]
    labels = [f"{number(f.mean, 2)}  {significance(f.p_value)}" for f in found]
    assert [word for word in words if " p " in word] == labels


def test_a_figure_of_many_explainers_holds_only_the_best_and_says_so(crowd: Record) -> None:
    names = set(crowd.summary["explainers"])
    drawn = [word for word in shown(figure_of(crowd, "stability")) if word in names or word.endswith("…")]
    assert len(drawn) == MOST == 15
    assert "the best 15 of 30 explainers" in captions(crowd)["stability"]
    assert "least noticing 15" in captions(crowd)["sanity"]
    few = dict(list(crowd.summary["explainers"].items())[:15])
    some = remade(crowd, summary=crowd.summary | {"explainers": few})
    assert all("15 of" not in caption for caption in captions(some).values())
    assert len([word for word in shown(figure_of(crowd, "verdict")) if word.endswith(("pass", "warn", "fail"))]) > 15


def test_curves_show_few_lines_beside_chance(crowd: Record) -> None:
    found = [f for f in crowd.findings if (f.audit, f.measure, f.group) == ("erasure", "comprehensiveness", "all")]
    ordered = sorted((f for f in found if f.subject not in ("random", "chance")), key=lambda f: -f.mean)
    words = shown(figure_of(crowd, "erasure_by_share"))
    assert [word for word in words if word in crowd.summary["explainers"]] == [
        "random",
        *(f.subject for f in ordered[:5]),
    ]
    assert [word for word in words if word.endswith(" %")] == ["1 %", "5 %", "10 %", "20 %", "50 %"]
    retrained = shown(figure_of(crowd, "roar_by_share"))
    assert [word for word in retrained if word.endswith(" %")] == ["0 %", "10 %", "30 %", "50 %"]


def test_without_words_taken_away_all_lines_start_where_chance_does(crowd: Record) -> None:
    figure = figure_of(crowd, "roar_by_share")
    assert figure is not None
    drawn = figure.to_dict()
    held = [*drawn.get("datasets", {}).values(), *(layer["data"].get("values", []) for layer in drawn["layer"])]
    rows = [row for each in held for row in each if row["share"] == "0 %"]
    start = crowd.finding("roar", "chance", "accuracy@0")
    assert start is not None
    assert {row["mean"] for row in rows} == {start.mean}
    assert len({row["name"] for row in rows}) == 6


def test_what_a_figure_refers_to_is_its_own() -> None:
    def clipped(colour: str) -> str:
        points = sheet([{"x": 0.0}, {"x": 2.0}]).mark_point(clip=True, color=colour)
        return svg(finish(layers(points.encode(x="x:Q")), "Clipped."))

    texts = [clipped("#111111"), clipped("#222222")]
    names = [re.findall(r'<clipPath id="([^"]+)"', text) for text in texts]
    assert names[0]
    assert names[1]
    assert not set(names[0]) & set(names[1])
    for text, own in zip(texts, names, strict=True):
        assert set(re.findall(r"url\(#([^)]+)\)", text)) <= set(own)
        assert re.search(r"url\(#", text)
    assert clipped("#111111") == texts[0]


def test_class_names_stay_text_and_are_cut_to_fit(make: Callable[..., Record]) -> None:
    hostile = ("<script>alert(1)</script>", '\x00 role="x" & y', "n" * 80)
    figure = figure_of(make(count=30, classes=hostile), "agreement_gradient")
    assert figure is not None
    text = svg(figure)
    words = [node.text or "" for node in ElementTree.fromstring(text).iter() if node.tag.endswith("}text")]
    assert "<script" not in text
    assert any(word.startswith("<script>alert(1)</script> (n = ") for word in words)
    assert any(word.startswith('� role="x" & y') for word in words)
    assert any(word.startswith("nnn") and "… #2" in word for word in words)


@pytest.mark.parametrize("number", [1, 4, 12])
def test_any_number_of_classes_can_be_drawn(number: int, make: Callable[..., Record]) -> None:
    record = make(count=60, classes=tuple(f"class {place}" for place in range(number)))
    for name in ("agreement_gradient", "permutation", "adversary"):
        figure = figure_of(record, name)
        assert figure is not None
        text = svg(figure)
        assert ("all 12 classes (n = 60)" in text) == (number == 12)


def test_colours_can_be_told_from_light_and_from_dark_ground() -> None:
    style = (Path(audit.__file__).parent / "templates" / "report.css").read_text(encoding="utf-8")
    grounds = re.findall(r"--ground: (#[0-9a-f]{6});", style)
    assert len(grounds) == 2
    for colour in (*CLASS_COLOURS, *GRADE_COLOURS.values()):
        assert min(contrast(colour, ground) for ground in grounds) >= 3


def test_text_can_be_read_on_every_ground() -> None:
    style = (Path(audit.__file__).parent / "templates" / "report.css").read_text(encoding="utf-8")
    for theme in re.findall(r":root \{(.*?)\}", style, flags=re.DOTALL)[:2]:
        colours = dict(re.findall(r"--(\w+): (#[0-9a-f]{6});", theme))
        for name in ("ink", "soft", "link", "pass", "warn", "fail", "reference", "none"):
            for ground in ("ground", "card"):
                assert contrast(colours[name], colours[ground]) >= 4.5, (name, ground)


@pytest.mark.parametrize(("ending", "start"), [(".svg", b"<svg"), (".png", b"\x89PNG"), (".PDF", b"%PDF")])
def test_figures_are_saved_by_the_ending_of_the_name(ending: str, start: bytes, record: Record, tmp_path: Path) -> None:
    figure = figure_of(record, "verdict")
    assert figure is not None
    save(figure, tmp_path / f"figure{ending}")
    assert (tmp_path / f"figure{ending}").read_bytes().startswith(start)
    assert len(list(tmp_path.iterdir())) == 1


def test_an_unknown_ending_is_refused_in_one_sentence(record: Record, tmp_path: Path) -> None:
    figure = figure_of(record, "verdict")
    assert figure is not None
    with pytest.raises(AssayError, match=r"end the name in .svg, .png or .pdf"):
        save(figure, tmp_path / "figure.gif")
    assert not list(tmp_path.iterdir())
