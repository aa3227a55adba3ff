"""What the page says whatever was found: questions, how to read each part, limits, papers."""

from __future__ import annotations

TITLES = {
    "speech": "Which kinds of words do heads look at?",
    "coreference": "Do heads find what a pronoun stands for?",
    "negation": "Do heads link words to the negation over them?",
    "pairs": "What do all heads together tell about two words?",
    "importance": "Which heads does the classifier need?",
}
READINGS = {
    "relations": "A head is right for a word when, of all other words of the sentence, the word attends most to the "
    "right one: its governor, or in the other direction a word that depends on it. The head was chosen on dev "
    "sentences and is scored on test sentences. The fixed offset is the best of three words to the left up to three "
    "to the right, chosen on dev sentences too: a head that only looks one word back gains nothing over it. The "
    "control repeats the whole search many times with random governors, the same for all words of a type; what it "
    "reaches, a search among so many heads reaches by luck. “Any relation” is all of them but punctuation.",
    "squares": "Each cell is a head (column) of a layer (row; the first, next to the words, on top): the darker, the "
    "more often right on test sentences, on one scale from 0 to 100 % for all. The ring is the head that was chosen "
    "on dev sentences.",
    "drawn": "The words stand twice: those that attend on the left, those attended to on the right. The broader and "
    "stronger a line, the larger the weight; weights below 4 % and those to special places of the model are left "
    "out, so a word may have no line. Bold words are those that the head is asked about; orange lines go from them "
    "to the right answer, blue lines elsewhere; those of other words are grey. A tick stands before a bold word that "
    "attends to the right answer more than to any other word, a cross before one that does not. Sentences and heads "
    "were not drawn by lot: they are those of the relations that lead most surely.",
    "speech": "Orange: of what the head gives to words, this part of speech gets more than even attention would give "
    "it; blue: less. The darkest shade is four times as much, or a fourth. In the control, types of words that are "
    "about as frequent have exchanged their tags: what is left is what a head gives to frequent or to rare words of "
    "any kind.",
    "coreference": "Right: of two names, the pronoun attends more to the one that it stands for. The confusion is "
    "the cross-entropy of the attention shared out between the two: lower is better, and 0.69 is a coin’s. The "
    "control draws the right name.",
    "negation": "Right: a word in the scope of a negation attends more to the word that negates than to any other. "
    "In the control other words of the sentence, drawn at random, stand in for the ones that negate.",
    "pairs": "A linear model reads the weights of all heads between two words, both ways, and guesses whether one "
    "governs the other, or in which relation. The control has random answers that depend on the types of the two "
    "words alone, so they can only be learnt by heart: what counts is the distance between the two (Hewitt and "
    "Liang, 2019).",
    "importance": "Importance is the mean size of the slope of the loss by a gate on the head: how fast the loss "
    "would change if the head were turned down a little. It was found on dev texts. In the curve, heads go one tenth "
    "at a time; where pruning by importance keeps more accuracy than a random order does, importance knows "
    "something. The band is the 95 % interval of the first line; the dotted line is the share of the commonest class.",
}
LIMITS = (
    "Attention to a word is not use of it: a head may attend to the governor and pass on nothing of it. Probes say "
    "what is there to be read, not what the model does with it; only pruning asks that.",
    "A relation may be spread over several heads; the probe of single heads does not see that, that of pairs does.",
    "Weights go from word to word: the pieces of a word that is attended to are added up, those of a word that "
    "attends are averaged, and what goes to special places of the model is left out.",
    "Intervals take into account that words of one sentence are alike. They are those of one relation at a time: of "
    "many relations some will seem to lead by luck.",
)
PAPERS = (
    "Kevin Clark, Urvashi Khandelwal, Omer Levy, Christopher D. Manning (2019): What Does BERT Look At? An Analysis of "
    "BERT’s Attention. BlackboxNLP.",
    "Phu Mon Htut, Jason Phang, Shikha Bordia, Samuel R. Bowman (2019): Do Attention Heads in BERT Track Syntactic "
    "Dependencies? arXiv 1911.12246.",
    "Emily Reif, Ann Yuan, Martin Wattenberg, Fernanda Viégas, Andy Coenen, Adam Pearce, Been Kim (2019): Visualizing "
    "and Measuring the Geometry of BERT. NeurIPS.",
    "John Hewitt, Percy Liang (2019): Designing and Interpreting Probes with Control Tasks. EMNLP.",
    "Paul Michel, Omer Levy, Graham Neubig (2019): Are Sixteen Heads Really Better than One? NeurIPS.",
)
