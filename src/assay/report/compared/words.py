"""What the page says about each audit of models whatever it found: title, captions, how to read it."""

from __future__ import annotations

TITLES = {
    "dispersion": "What does a state stand for?",
    "sparsity": "Is sparse attention easier to read?",
    "word_level": "Does attention say more when states stay close to their words?",
    "frozen_uniform": "Is attention needed at all?",
    "seed_variance": "How far apart does the seed alone put attention?",
    "guide": "Does the attention help another model?",
    "trained_adversary": "Can attention be trained away?",
    "deception": "How little attention do telling words need?",
}
FIGURES = {
    "dispersion": ("dispersion",),
    "sparsity": ("sparsity", "sparsity_agreement"),
    "word_level": ("word_level", "word_level_right", "word_level_information", "word_level_shuffled"),
    "frozen_uniform": ("frozen_uniform",),
    "seed_variance": ("tvd_jsd",),
    "guide": ("guide",),
    "trained_adversary": ("tvd_jsd",),
    "deception": ("deception",),
}
CAPTIONS = {
    "dispersion": "How evenly importance is spread over the words of a text, with 95 % intervals: 1 all alike, 0 on a "
    "single one.",
    "sparsity": "Accuracy, and normalised entropies, by the λ of sparsegen, or the α of entmax: the further right, the "
    "sparser the attention; steps are those of the sweep, not to scale. Softmax has no λ: then it stands apart, on the "
    "left.",
    "sparsity_agreement": "τ of attention with the importance of words and of states, with 95 % intervals. The dashed "
    "line at 0 is what unrelated rankings give.",
    "word_level": "How far another attention can lie (JSD) when the output may move so much (TVD). Lower is better: "
    "then another attention costs more.",
    "word_level_right": "Accuracy of each model, with 95 % intervals. The dashed line is the base model.",
    "word_level_information": "How much a state tells of its own word, with 95 % intervals. The dashed line is the "
    "base model.",
    "word_level_shuffled": "Median change of the prediction when attention is shuffled, with 95 % intervals. The "
    "dashed line is the base model.",
    "frozen_uniform": "Accuracy with learnt attention, and of a model trained with all weights alike, with 95 % "
    "intervals.",
    "guide": "Accuracy of a model that reads each word alone, by what weighs the words, with 95 % intervals. The "
    "dashed line is its own attention.",
    "tvd_jsd": "Distance of attention against the change of the predictions, means over texts; the cross is the "
    "audited model, bars are 95 % intervals. Adversaries further up than the seeds, and not further right, moved "
    "attention at no cost. Names that would overlap are left out.",
    "deception": "Accuracy against the attention left on the avoided words, a point for each λ, with 95 % intervals. "
    "The dashed line is a model that never sees these words. Names that would overlap are left out.",
}
READING = {
    "dispersion": "Attention weighs states, not words. Where a state is moved by the whole text, a weight on it says "
    "little about the word at its place. Entropies are normalised by the length of the text, so that texts can be "
    "compared; gradients and deletions are two answers to the same question, and may differ. The decoder is linear, so "
    "that the gradient of a state grows with its attention: agreement of these two is high by construction. This is "
    "one model: another seed gives other states.",
    "sparsity": "One model was trained for each λ, all else equal. If sparse attention were easier to read, agreement "
    "with the importance of words should rise to the right. τ with λ is taken text by text and then averaged: above 0, "
    "something rises as attention gets sparser. With one seed for each λ, a single step up or down may be chance; look "
    "at the whole line. Agreement with the gradient of states is high by construction, for the decoder is linear.",
    "word_level": "Each variant is trained like the base model with one thing added that keeps a state close to its "
    "word. It is worth its cost where the task score holds, a state tells more of its word, and shuffling or replacing "
    "attention changes more. Information is a lower bound, among frequent words; with words shuffled it should be "
    "about 0. The base model need not be the audited one: its states may have been given the size of embeddings. One "
    "seed for each variant.",
    "frozen_uniform": "If a model does as well when all words weigh the same, the task does not need attention, and "
    "whether attention explains cannot be seen on it. The interval is over texts; two models of one recipe differ as "
    "well, by how much the audit of seeds tells.",
    "seed_variance": "Models that differ in nothing but their seed are equally good accounts of the data. What "
    "attention varies among them it varies for no reason. The audited model is one of them; distances are from it.",
    "guide": "The guided model sees one word at a time, so that it must rely on the weights it is given. If attention "
    "marks words that matter, it should serve this model better than uniform weights or those of an adversary. It need "
    "not: a state knows its context, the word alone does not.",
    "trained_adversary": "A model is trained to predict as the audited one does with attention as different as "
    "possible; λ is how much difference is worth. Attention that can be moved far, at no more change of the "
    "predictions than another seed makes, is not bound to them. The adversaries are found by training: better ones may "
    "exist.",
    "deception": "Attention is trained to stay off some words, those that were named or those that tell most of the "
    "label in the training texts; λ is how strongly. Where accuracy holds at hardly any attention on them, the model "
    "reads them through other states, and its heatmap hides what it uses. Where a model without these words does as "
    "well, there is nothing to hide. Attention is counted in texts that hold such a word, accuracy in all. One seed "
    "for each λ.",
}
