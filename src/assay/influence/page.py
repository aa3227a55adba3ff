"""The training texts behind a decision, and those whose label is doubtful, as a document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from assay.document import (
    Bar,
    Block,
    Cell,
    Column,
    Document,
    Figure,
    Fold,
    Group,
    Heading,
    Headline,
    Passage,
    Prose,
    Row,
    Section,
    Span,
    Table,
    Words,
    grid,
    page_of,
    provenance,
    some,
    versions,
)
from assay.influence.stories import story
from assay.stories import filled
from assay.writing import count, figures, interval, number, percent

Answer = Mapping[str, Any]

LONGEST = 600  # letters of a training text that are shown
BRIEF, MOST = 160, 20  # letters and rows in a terminal
WORDS, LISTED = 60, 12  # words of a text that are shown, and those that stand as numbers

LIMITS = (
    "A score is what a method expects of a text, not what happens when the model is trained without it. How good that "
    "is for a model can be measured: assay influence --check lds, or --check removal.",
    "Texts that say the same stand in for one another: each alone may count little though all together count much.",
    "Training has luck in it. Another seed gives another model, and for that one other texts may count.",
)
SUSPECTED = (
    "A high place is a reason to look at a text, not a proof that its label is wrong: a rare but right label looks the "
    "same to a model.",
    "The plain loss is the usual signal: on texts with flipped labels no method found them clearly better.",
)
SALIENCES = {
    "norm": "the norm of the gradient of the {target} of {asked} by the word’s embedding",
    "input_x_gradient": "the gradient of the {target} of {asked} by the word’s embedding, times that embedding",
    "integrated_gradient": "the word’s share in the {target} of {asked} by integrated gradients",
}


def document(answer: Answer) -> Document:
    """The whole page: what was found, what stands behind words, checks by training again, limits, provenance."""
    text = answer["kind"] == "text"
    title = "Training texts behind a decision" if text else "Training texts with a doubtful label"
    subject = "training texts behind a decision" if text else "doubtful labels"
    return page_of(answer, title, subject, _sections(answer, text))


def brief(answer: Answer) -> tuple[Block, ...]:
    """What a terminal shows: the finding, and the texts in short."""
    lead = Headline(f"{headline(answer)}.")
    if answer["kind"] == "mislabelled":
        heads = ("label", "model says", "suspicion", "training text")
        mended = [Prose(f"{repair_sentence(answer['repair'])}.")] if "repair" in answer else []
        return lead, _brief(heads, [(each, each["predicted"]) for each in answer["suspects"][:MOST]]), *mended
    label = story(answer).measure("score").label
    tables = [
        _brief(
            ("label", "", label, title),
            [(each, "" if each["label"] == each["predicted"] else "≠") for each in answer[name]],
        )
        for title, name in (("speaks for it", "supporting"), ("speaks against it", "opposing"))
    ]
    said = [Prose(answer["sentence"])] if answer.get("sentence") else []
    said += [Prose(f"{swap_sentence(answer, answer['swap'])}.")] if answer.get("swap") else []
    return lead, *tables, *said


def headline(answer: Answer) -> str:
    """The main finding in one sentence."""
    if answer["kind"] == "mislabelled":
        against = sum(each["predicted"] != each["label"] for each in answer["suspects"])
        return (
            f"{count(against)} of the {count(len(answer['suspects']))} most suspicious training texts have a label "
            "that the model itself would not give"
        )
    sure = percent(answer["probabilities"][answer["asked"]])
    if not answer["supporting"]:
        return f"{answer['asked']} ({sure}): no training text speaks for it"
    return f"{answer['asked']} ({sure}): {_filled(answer, story(answer).finding)}"


def reading(answer: Answer) -> str:
    """How the table is read."""
    if answer["kind"] != "text":
        return (
            "Texts are in the order of suspicion by the method; the loss is that of the model for the label that the "
            "text has."
        )
    return _filled(answer, story(answer).reading)


def _filled(answer: Answer, template: str) -> str:
    """A sentence of the method's story with the numbers of this answer."""
    scores = [each["score"] for each in answer["supporting"]]
    falls = answer["target"] != "loss"
    return filled(
        template,
        target=f"the {_named(answer['target'])} of {answer['asked']}",
        asked=str(answer["asked"]),
        value=figures(answer["value"]),
        count=count(len(scores)),
        moved=figures(abs(sum(scores))),
        mean=number(sum(scores) / max(1, len(scores)), 2),
        less="lower" if falls else "higher",
        lower="fall" if falls else "rise",
        higher="rise" if falls else "fall",
    )


def caveats(answer: Answer) -> list[str]:
    """What a reader must know before the numbers."""
    found = []
    covered = answer["method"].get("covered")
    if covered is not None and covered < 0.9995:
        found.append(f"This method reads {percent(covered)} of the parameters; what the others learnt is not seen.")
    if not answer["corpus"]["course"]:
        found.append(
            "How this model was trained is not known: the texts are taken on trust, and so is that training ended "
            "where the loss is smallest."
        )
    if answer["kind"] == "text" and answer["asked"] != answer["predicted"]:
        found.append(f"The model predicts {answer['predicted']}; the scores are for {answer['asked']}.")
    return found


def _sections(answer: Answer, text: bool) -> Iterable[Section]:
    yield Section("verdict", "", _verdict(answer, text), "Finding")
    if tokens := answer.get("tokens"):
        yield Section("tokens", "Why the model looks at a word", words_behind(tokens), "Words")
    made = {"lds": _lds, "removal": _removal}
    checks = [made[name](check) for name, check in (answer.get("checks") or {}).items() if name in made]
    if repair := answer.get("repair"):
        yield Section("repair", "Trained again", _repaired(repair), "Repair")
    if swap := answer.get("swap"):
        yield Section("swap", "A word of the other side", _swapped(answer, swap), "Swap")
    if checks:
        yield Section("checks", "", tuple(chain.from_iterable(checks)), "Checks", "Checks by training again")
    yield Section("limits", "Limits", tuple(map(Prose, LIMITS if text else SUSPECTED)), "Limits")
    yield provenance(answer, "influence.json", _facts(answer))


def _verdict(answer: Answer, text: bool) -> tuple[Block, ...]:
    corpus = answer["corpus"]
    lead, colon, because = headline(answer).partition(": ")
    kicker = f"{count(corpus['train'])} training texts of ", Span(corpus["name"], "name")
    top = Headline(
        (Span(lead, "name"), colon.strip()),
        f"{because}." if because else "",
        (*kicker, f", method {answer['method']['name']}"),
    )
    warned = [Prose(each, "caveat") for each in caveats(answer)]
    if not text:
        return some(top, warned, Prose(reading(answer), "reading"), _suspects(answer))
    quotes = [Prose(each, "quote") for each in (answer["text"], answer["query"], answer.get("sentence")) if each]
    peak = max((abs(each["score"]) for name in ("supporting", "opposing") for each in answer[name]), default=0.0)
    head = story(answer).measure("score").label
    tables: list[Block] = []
    for title, name in (("Speak for it", "supporting"), ("Speak against it", "opposing")):
        rows = answer[name]
        tables += [Heading(title, 2, name), _trained(name, head, rows, peak or 1.0) if rows else Prose("None.", "soft")]
    return some(top, warned, quotes, Prose(reading(answer), "reading"), tables)


def _trained(name: str, head: str, rows: Sequence[Answer], peak: float) -> Table:
    heads = (
        Column(head, True, "score"),
        Column("size", role="bar soft"),
        Column("label", role="label"),
        Column("training text", wide=True),
    )
    lines = []
    for each in rows:
        error = (f"± {figures(each['error'])}",) if each["error"] else ()
        score = Cell(f"{'+' if each['score'] > 0 else ''}{figures(each['score'])}", error)
        lines.append(Row((score, Cell(drawing=Bar(abs(each["score"]) / peak)), _label(each), _text(each))))
    return Table(heads, tuple(lines), layout="stack", role=f"trained {name}")


def _suspects(answer: Answer) -> Table:
    heads = (
        Column("row", True, "place"),
        Column("label", role="label"),
        Column("suspicion", True, "score"),
        Column("loss", True, "score"),
        Column("training text", wide=True),
    )
    rows = [
        Row((count(each["place"]), _label(each), figures(each["score"]), figures(each["loss"]), _text(each)))
        for each in answer["suspects"]
    ]
    return Table(heads, tuple(rows), layout="stack", role="trained")


def _label(each: Answer) -> Cell:
    wrong = (("model: ", Span(each["predicted"], "name")),) if each["predicted"] != each["label"] else ()
    return Cell(Span(each["label"], "name"), wrong, role="strange" if wrong else "")


def _text(each: Answer) -> Cell:
    query = (Span(_cut(each["query"]), "name"),) if each["query"] else ()
    return Cell(Span(_cut(each["text"]), "name"), query)


def _cut(text: str, most: int = LONGEST) -> str:
    return text if len(text) <= most else f"{text[:most].rstrip()} …"


def _brief(heads: Sequence[str], rows: Iterable[tuple[Answer, str]]) -> Table:
    columns = tuple(Column(head, number=place == 2, wide=place == 3) for place, head in enumerate(heads))
    lines = []
    for each, said in rows:
        words = " ".join(each["text"].split())
        lines.append(Row((each["label"], said, f"{each['score']:+.3g}", words[:BRIEF] + "…" * (len(words) > BRIEF))))
    return Table(columns, tuple(lines))


def _named(target: str) -> str:
    return "log-odds" if target == "margin" else target


def _facts(answer: Answer) -> Iterable[tuple[str, str]]:
    """Where the numbers come from."""
    model, corpus, method = answer["model"], answer["corpus"], answer["method"]
    yield "Model", f"{model['description']}; {count(model['parameters'])} parameters"
    yield "Training texts", f"{count(corpus['train'])} of {corpus['name']}"
    yield "Method", f"{method['name']}" + (f": {method['meaning']}" if method.get("meaning") else "")
    if method.get("covered") is not None:
        yield "Parameters that took part", percent(method["covered"])
    for name, value in (method.get("notes") or {}).items():
        yield name.replace("_", " ").capitalize(), figures(value) if isinstance(value, float) else str(value)
    yield "Weights (sha256)", model["sha256"]
    yield "Seconds", figures(answer["seconds"])
    yield "Versions", versions(answer)


def repair_sentence(repair: Answer) -> str:
    """What training again with mended labels changed."""
    what = "with other labels for" if repair["way"] == "relabel" else "without"
    return (
        f"Trained again {what} {count(repair['rows'])} of these texts, "
        f"the model is right about {percent(repair['after'][0])} of {count(repair['tests'])} test texts, "
        f"where it was about {percent(repair['before'][0])}"
    )


def _repaired(repair: Answer) -> tuple[Block, ...]:
    names = {"before": "as it was", "after": "trained again", "gained": "difference"}
    rows = [(title, number(repair[name][0]), interval(*repair[name][1:])) for name, title in names.items()]
    heads = ("model", "share of test texts it is right about", "95 % interval")
    said = Prose((f"{repair_sentence(repair)}. It is in ", Span(repair["folder"], "name"), "."))
    return said, grid(heads, rows, title="Accuracy before and after")


def swap_sentence(answer: Answer, swap: Answer) -> str:
    """What the model answers with one word swapped."""
    source = swap["source"]
    then = f"the model answers {swap['predicted']}" if swap["flipped"] else "the decision stays"
    return (
        f"With “{swap['by']}” from a training text of {source['label']} in place of “{swap['word']}”, {then}: "
        f"{answer['asked']} has {percent(swap['after'])} instead of {percent(swap['before'])}"
    )


def _swapped(answer: Answer, swap: Answer) -> tuple[Block, ...]:
    return (
        Prose(f"{swap_sentence(answer, swap)}."),
        Prose(swap["text"], "quote"),
        Prose(("The word is taken from: ", Span(_cut(swap["source"]["text"]), "name")), "soft"),
    )


def _lds(check: Answer) -> tuple[Block, ...]:
    """How well predictions rank what happened when models were trained again."""
    rows = [
        (
            each["method"],
            number(each["lds"], 2),
            interval(each["low"], each["high"], 2),
            figures(each["seconds"]),
            percent(each["covered"]),
        )
        for each in check["methods"]
    ]
    read = (
        f"{count(check['subsets'])} models were trained again, each without {percent(check['share'], 0)} of the texts. "
        f"The number is how well the summed scores of the removed texts rank what really happened to "
        f"{count(check['queries'])} texts (Spearman; 1 is perfect, 0 is chance)."
    )
    heads = ("method", "score", "95 % interval", "seconds", "parameters")
    return _check("Do the predictions come true? (linear datamodelling score)", read, heads, rows)


def _removal(check: Answer) -> tuple[Block, ...]:
    """What happened when the strongest texts were taken away."""
    rows = [
        (
            each["method"],
            count(each["count"]),
            number(each["predicted"]),
            number(each["measured"]),
            interval(each["low"], each["high"]),
        )
        for each in check["rows"]
    ]
    read = (
        f"The texts that speak most for each of {count(check['queries'])} decisions were taken away, and the model was "
        "trained again: what was predicted, and what really happened, beside as many texts drawn by chance."
    )
    heads = ("method", "texts removed", "predicted change", "measured change", "95 % interval")
    return _check("What really happens without them", read, heads, rows)


def _check(title: str, read: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> tuple[Block, ...]:
    return Heading(title, 2), Prose(read), grid(heads, rows, title=title)


def words_behind(answer: Answer) -> tuple[Block, ...]:
    """Words that the model looks at, and behind each the training texts that made it look there."""
    salience = SALIENCES[answer["salience"]].format(target=_named(answer["target"]), asked=f"“{answer['asked']}”")
    read = (
        f"Salience is {salience}: the stronger the shade, the more the answer hangs on the word. Behind each word "
        "stand the training texts without which its salience would be lower, with the predicted change as a share of "
        "it. In them, words with a solid orange line made the model look there, words with a dashed blue line made it "
        "look away; the strongest word of each text sets its scale."
    )
    return some(
        _passage(answer, answer["scores"], "over"),
        Prose(("How much the answer ", Span(f"“{answer['asked']}”", "name"), " hangs on each word."), "soft"),
        [_behind(answer, token) for token in answer["tokens"]],
        Prose(read, "reading"),
    )


def _behind(answer: Answer, token: Answer) -> Group:
    salience, word = token["salience"], _word(answer, token["place"])
    title = Heading(("Behind ", Span(word, "word"), " ", Span(f"salience {figures(salience)}", "soft")))
    if not token["behind"]:
        none = "Without any one training text, this word would be looked at as much or more."
        return Group((title, Prose(none)), "look", word)
    peak = max(abs(each["score"]) for each in token["behind"]) or 1.0
    return Group((title, *(_look(each, salience, peak) for each in token["behind"])), "look", word)


def _look(each: Answer, salience: float, peak: float) -> Group:
    """A training text: what would change without it, and through which of its words most."""
    sign = 1 if salience < 0 else -1  # what made the model look is what would be missing
    made = [sign * score for score in each["scores"]]
    order = sorted(range(len(made)), key=lambda index: -made[index])
    through = _word(each, order[0]) if order and made[order[0]] > 0 else ""
    said: Words = ("Most through ", Span(through, "word"), ".") if through else "Through none of its words alone."
    listed = sorted(sorted(order, key=lambda index: -abs(made[index]))[:LISTED])
    rows = [(Span(_word(each, index), "name"), _change(each["scores"][index], salience)) for index in listed]
    numbers = Fold("Its words as numbers", (grid(("without the word", "salience"), rows, title="Words as numbers"),))
    change = Figure(
        Bar(abs(each["score"]) / peak),
        (Span(str(each["label"]), "name"), f", text {count(each['row'])}"),
        _change(each["score"], salience),
    )
    return Group((change, Group((_passage(each, made), Prose(said, "soft"), numbers), "words")), "row")


def _passage(text: Answer, scores: Sequence[float], role: str = "") -> Passage:
    return Passage(text["text"], text["starts"], text["ends"], scores, WORDS, role=role)


def _change(score: float, salience: float) -> str:
    """A change of the salience, as a share of it where it is not 0."""
    if not salience:
        value, text = score, figures(score)
    else:
        value = 100 * score / abs(salience)
        text = f"{number(value, 2) if abs(value) >= 0.095 else figures(value)} %"
    return f"+{text}" if value > 0 else text


def _word(text: Answer, index: int) -> str:
    return str(text["text"][text["starts"][index] : text["ends"][index]])[:WORDS]
