"""What the page says about each audit whatever it found: title, captions, how to read it."""

from __future__ import annotations

from assay.report import stacks
from assay.report.compared import words as compared

TITLES = {
    "deciding": "Do the words that are shown decide, whatever the others are?",
    "agreement": "Do the explanations agree with each other?",
    "permutation": "Does it matter which {item} gets the attention?",
    "adversary": "Could another heatmap explain the same prediction?",
    "searched": "Does a search find the furthest attention?",
    stacks.AUDIT: stacks.TITLE,
    "truth": "Do the explanations find the words that decide?",
    "erasure": "Does the prediction need the words that are shown?",
    "plausibility": "Do the explanations convince people?",
    "sanity": "Do the explanations notice another model?",
    "stability": "Do the explanations hold still?",
    "consistency": "Do the explanations name the same words?",
    "roar": "Can the model learn without the words that are shown?",
    "shortcut": "Do the explanations show a shortcut?",
    "single_weight": "Does the most attended {item} matter more than another?",
    "minimal_set": "How many {items} must go before the decision changes?",
} | compared.TITLES
FIGURES = {
    "agreement": ("agreement_gradient", "agreement_leave_one_out"),
    "permutation": ("permutation",),
    "adversary": ("adversary", "adversary_by_attention"),
    stacks.AUDIT: (stacks.AUDIT,),
    "deciding": ("deciding",),
    "truth": ("truth",),
    "erasure": ("erasure", "erasure_by_share"),
    "plausibility": ("plausibility",),
    "sanity": ("sanity",),
    "stability": ("stability",),
    "roar": ("roar", "roar_by_share"),
    "shortcut": ("shortcut",),
    "single_weight": ("single_weight", "single_weight_smaller"),
    "minimal_set": ("minimal_set", "minimal_set_mass"),
} | compared.FIGURES
CAPTIONS = {
    "agreement_gradient": "Attention and gradients, text by text. The dashed line at 0 is what unrelated "
    "rankings give.",
    "agreement_leave_one_out": "Attention and leave-one-out, text by text. The dashed line at 0 is what "
    "unrelated rankings give.",
    "permutation": "Change of the prediction when attention is shuffled, by how peaked attention is. Thin "
    "line: 5 to 95 % of texts; bar: 25 to 75 %; thick tick: median.",
    "adversary": "Distance of the furthest attention with the same prediction. The dashed line is the "
    "largest divergence that two distributions can have.",
    "adversary_by_attention": "The same distance, by how peaked the observed attention is. Thin line: 5 to "
    "95 % of texts; bar: 25 to 75 %; thick tick: median.",
    stacks.AUDIT: stacks.CAPTION,
    "deciding": "How few words each explainer takes to keep the decision, and to lose it, beside "
    "the ranking that takes the fewest, with 95 % intervals. The dashed line is where random rankings are.",
    "truth": "How well each explainer finds the deciding words, with 95 % intervals. The dashed line is the "
    "AUPRC of random scores.",
    "erasure": "Comprehensiveness beyond that of random rankings (the dashed line at 0), with 95 % intervals; "
    "p from a paired test of the mean.",
    "erasure_by_share": "Fall of the probability as more of the highest words go, for the five explainers with "
    "the largest falls at most, and for random words (dashed).",
    "plausibility": "Match with the words that people marked, with 95 % intervals. The dashed line is the AUPRC "
    "of random scores. What people find convincing, not what the model did.",
    "sanity": "Likeness of the explanations when more and more of the model is drawn at random, from its output "
    "down, and when it has learnt random labels. At the dashed line nothing was noticed.",
    "stability": "Likeness of explanations before and after tiny changes of the embeddings, with 95 % intervals. "
    "The dashed line is where random scores are.",
    "roar": "Accuracy lost by retraining without the highest words, beyond random words (the dashed line at 0), "
    "with 95 % intervals; p from a paired test of the mean.",
    "roar_by_share": "Accuracy of the retrained models, for the five explainers with the largest falls at most, "
    "and for random words (dashed).",
    "shortcut": "Precision among as many of the highest words as were planted, in texts where the model uses "
    "them, with 95 % intervals. The dashed line is where random scores are.",
    "single_weight": "How much more the output moves (JS divergence, nats) without the most attended {item} than "
    "without a random other one, by the gap between their attention weights. Box: the middle half of the texts; thick "
    "tick: median; thin line: to the last text within 1.5 box lengths.",
    "single_weight_smaller": "In how many texts the most attended {item} moves the output less than the other one, by "
    "the gap between their attention weights.",
    "minimal_set": "Share of the {items} erased, in the order of each ranking, until the decision first changes. All "
    "boxes hold the same texts: where a ranking never changes the decision everything is erased, and the text lies at "
    "the right end; how many these are stands beside the median. Box: the middle half of the texts; thick tick: "
    "median; thin line: to the last text within 1.5 box lengths. On top is what erases least on average; the dashed "
    "line is the median of the smallest set.",
    "minimal_set_mass": "The same as the share of all attention that lay on what was erased by then; all of it where "
    "the decision never changes.",
} | compared.CAPTIONS
READING = {
    "agreement": "If attention tells why a model decides, it should rank the words much as other measures "
    "of importance do. A heap near 1 means that it does, a heap around 0 that the rankings have nothing to "
    "do with each other. A share of significant texts says only that some relation is there: long texts "
    "make weak relations significant.",
    "permutation": "The weights of each text are dealt out anew at random, the {items} stay. If the "
    "prediction hardly moves even where one {item} had most of the attention (upper rows), it is hard to "
    "argue that this {item} was the reason.",
    "adversary": "Mass near the dashed limit means that for most texts some quite different heatmap goes "
    "with the same prediction. One would hope for small distances where attention is peaked (upper rows).",
    "searched": "A search of some hundred steps was the published way to find another attention with the same "
    "prediction. What it finds is a lower bound; the furthest one is computed, exactly where there are two classes. A "
    "low share means that the search makes attention look harder to replace than it is.",
    stacks.AUDIT: stacks.READING,
    "deciding": "Words give way to words drawn from other audited texts, so that texts stay of the kind that the model "
    "knows and the decision is not held by what is left out. A good ranking takes few of its highest words: with them "
    "alone the decision stays, and with them drawn anew it goes. 1 means as few as the better one of leave-one-out and "
    "integrated gradients takes, or fewer; 0.5 twice as many. Only texts count in which the words decide: against "
    "words drawn for all of them they raise the probability of the decision by a quarter at least. The mean of "
    "both, the economy, is what the verdict is read off.",
    "truth": "In this corpus it is known which words decide, so the ranking can be checked directly: 1 "
    "means that all deciding words come first.",
    "erasure": "If the words that an explainer ranks highest are the reason, the prediction should fall without "
    "them (comprehensiveness, high is good), stay with them alone (sufficiency, low is good), and change after "
    "few deletions (flip, low is good; a decision that never changes counts as all words). A text with words missing "
    "is not a text that the model has learnt, so part of any fall is surprise; this is why each number stands beside "
    "that of random words.",
    "plausibility": "People marked the words that they hold to be the reason. An explainer that finds them is "
    "easy to believe, and may still be wrong about the model, which may have used other words. These numbers do "
    "not count in the order of the leaderboard.",
    "sanity": "The model is replaced by one that has not learnt its task. An explanation that stays the same was "
    "about the text, not about the model. Low is good here, but noise is low too: this is a test to pass, not a "
    "race to win.",
    "stability": "Every embedding is moved by a hundredth of what usually lies between two words. A ranking that "
    "changes with it says more about its own noise than about the model. A constant would be perfectly steady: "
    "this too is a test to pass.",
    "consistency": "Two explanations of one prediction that name different words cannot both be the whole reason. "
    "Explainers stand in the order of their likeness, so that families show as dark blocks.",
    "roar": "The highest words are removed from the training texts too, and a model is trained from the start: it "
    "has never seen whole texts, so nothing surprises it. Accuracy should fall faster than without random words. "
    "Where the same thing can be learnt from other words, it need not fall at all.",
    "shortcut": "The planted words decide; in a shortcut they mean nothing. Only texts in which the model surely uses "
    "them count. An explainer that does not show them would hide the fault.",
    "single_weight": "The attention weight of one {item} is set to zero and the others share its attention. If "
    "attention tells what matters, boxes lie right of 0, and the further right the larger the gap (upper rows); bars "
    "are long only where the gap is small; and in the tables the {item} on top alone changes many more decisions than "
    "the other one alone. Where neither does, the decision does not hang on one {item}.",
    "minimal_set": "Attention is set to zero in the order of each ranking, the highest first, until the model decides "
    "otherwise. The smallest set is not searched for but computed: no fewer {items} change the decision, so in no text "
    "a ranking can do better, and what it needs beyond are {items} that it puts too high. Gradient is the slope of the "
    "decision’s probability at the attention weights, not the explainer of that name. The share of attention that "
    "is erased on the way says how much of it can go without any effect on the decision. Every "
    "ranking is measured on the same texts. Where it never changes the decision, everything was erased and it did not "
    "help, so the text counts as 100 % and, where a smaller set does change the decision, as all {items} beyond that; "
    "the table tells how many these are. The order is that of the mean share, which is the area over the curve of "
    "decisions changed by the time that so many {items} are erased. The random order is drawn once for each text.",
} | compared.READING
LIMITED = dict.fromkeys(("deciding", "truth", "erasure", "plausibility", "stability", "roar", "shortcut"), "best") | {
    "sanity": "least noticing"
}
"""Figures with a line for each explainer, as far as there is room, and which ones come first."""
