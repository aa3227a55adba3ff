"""Subwords of words are gathered into words, whatever the tokenizer does to spaces, accents and bytes."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import pytest
import tokenizers
import transformers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from assay.data.batches import tokenise
from assay.data.examples import Example
from assay.data.text import WORD, TextOptions, Tokeniser, Words
from assay.models.hf_subwords import SubwordOptions, SubwordTokeniser, _starts, _tight, gathered

SENTENCES = (
    "This is not a good film, is it? I don't think it's very watchable.",
    "We'll see: they've said the film isn't dull, but I'm unable to agree!",
    "A naïve café, 3 stars; well-made and un-watchable... the end.",
)
HARD = (
    "Don't  panic,\tit's   only a\nfilm!",
    " leading and trailing  ",
    "cafe\u0301s nai\u0308ve",  # accents by themselves
    "Good 😀 film 👩‍👩‍👧!! 👍🏽",
    "文字 and 電影很好。 film文",
    "ภาพยนตร์ดี हिन्दी фильм",
    "x² ½ ﬁlm ＡＢ İstanbul straße",
    "zero\u200bwidth soft\u00adhyphen nbsp\u00a0here \x07bell",
    "@entity12 saw @placeholder's film",
    "’Tis n’t they’ll",
    "....!!!???",
)


def _trained(inner: Tokenizer, trainer: Any) -> Any:
    inner.train_from_iterator(SENTENCES * 5, trainer)
    return inner


def _wordpiece() -> Tokenizer:
    inner = Tokenizer(models.WordPiece({}, unk_token="[UNK]"))  # type: ignore[arg-type]
    inner.normalizer, inner.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    return _trained(inner, trainers.WordPieceTrainer(vocab_size=90, special_tokens=["[UNK]"], show_progress=False))


def _bytes() -> Tokenizer:
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer, inner.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    return _trained(inner, trainers.BpeTrainer(vocab_size=300, initial_alphabet=alphabet, show_progress=False))


def _unigram() -> Tokenizer:
    inner = Tokenizer(models.Unigram())
    inner.normalizer = normalizers.Sequence([normalizers.NFKC()])
    inner.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=80, special_tokens=["<unk>"], unk_token="<unk>", show_progress=False, shrinking_factor=0.75
    )
    return _trained(inner, trainer)


def _fallback() -> Tokenizer:
    """Byte pairs of a text whose spaces are marked, and bytes for what is not known, as in Llama."""
    bytes_of_all = [f"<0x{byte:02X}>" for byte in range(256)]
    inner = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    special = ["<unk>", *bytes_of_all]
    return _trained(inner, trainers.BpeTrainer(vocab_size=340, special_tokens=special, show_progress=False))


KINDS = {"wordpiece": _wordpiece, "bytes": _bytes, "unigram": _unigram, "fallback": _fallback}
EVERY = pytest.mark.parametrize("kind", KINDS)


@cache
def tokeniser(kind: str) -> SubwordTokeniser:
    inner = transformers.PreTrainedTokenizerFast(tokenizer_object=KINDS[kind]())
    return SubwordTokeniser(inner, SubwordOptions(longest=500))


def pieces_of(kind: str, text: str) -> Any:
    return tokeniser(kind).inner.backend_tokenizer.encode(text, add_special_tokens=False)


def test_words_begin_where_those_of_our_own_models_do() -> None:
    own = Tokeniser.fit([*SENTENCES, *HARD], TextOptions(lowercase=False, min_count=1))
    for text in (*SENTENCES, *HARD):
        assert _starts(text) == [start for start, _ in own([text])[0].spans]
    plain = pre_tokenizers.Split(tokenizers.Regex(WORD), behavior="removed", invert=True)
    letters = "abn't ’'s.,!@entity1 \t\n-_9"
    generator = random.Random(0)
    for _ in range(200):
        text = "".join(generator.choice(letters) for _ in range(30))
        assert _starts(text) == [start for _, (start, _) in plain.pre_tokenize_str(text)]


@EVERY
@pytest.mark.parametrize("text", [*SENTENCES, *HARD])
def test_every_piece_belongs_to_one_word_and_order_is_kept(kind: str, text: str) -> None:
    encoding, (words,) = pieces_of(kind, text), tokeniser(kind)([text])
    assert words.subwords is not None
    assert [subword for word in words.subwords for subword in word] == encoding.ids
    assert all(words.subwords) and len(words.subwords) == len(words.ids) == len(words.spans)
    assert words.length == len(encoding.ids)


@EVERY
@pytest.mark.parametrize("text", [*SENTENCES, *HARD])
def test_spans_cover_what_the_pieces_stand_for_in_order_and_without_overlap(kind: str, text: str) -> None:
    (words,) = tokeniser(kind)([text])
    end = 0
    for start, stop in words.spans:
        assert end <= start < stop <= len(text)
        assert text[start:stop] == text[start:stop].strip()
        end = stop
    covered = {place for start, stop in words.spans for place in range(start, stop)}
    known = {place for start, stop in pieces_of(kind, text).offsets for place in range(start, stop)}
    assert {place for place in known if not text[place].isspace()} <= covered
    if kind in ("bytes", "fallback", "unigram"):  # these drop nothing
        assert {place for place, letter in enumerate(text) if letter.strip()} <= covered


@EVERY
@pytest.mark.parametrize("text", SENTENCES)
def test_words_are_those_of_our_own_models_where_pieces_keep_to_their_bounds(kind: str, text: str) -> None:
    encoding, (words,) = pieces_of(kind, text), tokeniser(kind)([text])
    own = [found for _, found in pre_tokenizers.Split(tokenizers.Regex(WORD), "removed", True).pre_tokenize_str(text)]
    offsets = [_tight(text, span) for span in encoding.offsets]
    begun = {start for start, _ in offsets}
    kept = [
        (start, stop) for start, stop in own if start in begun and not any(low < stop < high for low, high in offsets)
    ]
    assert set(kept) <= set(words.spans)
    assert len(kept) > 0.6 * len(own)  # don't may be don and 't, and three full stops one subword


def test_contractions_are_split_as_in_the_penn_treebank_where_the_tokenizer_lets_us() -> None:
    text = "it's they'll we've I'm"
    for kind in ("bytes", "wordpiece"):
        (words,) = tokeniser(kind)([text])
        assert [text[start:stop] for start, stop in words.spans] == ["it", "'s", "they", "'ll", "we", "'ve", "I", "'m"]


def test_a_character_of_several_bytes_is_one_word() -> None:
    for kind in ("bytes", "fallback"):
        for text, expected in (("film 😀 film", ["film", "😀", "film"]), ("文字", ["文", "字"])):
            (words,) = tokeniser(kind)([text])
            assert [text[start:stop] for start, stop in words.spans] == expected
            assert max(map(len, words.subwords or [])) >= 3


def test_accents_by_themselves_do_not_split_a_word() -> None:
    for kind in KINDS:
        (words,) = tokeniser(kind)(["cafe\u0301s film"])
        assert words.spans == [(0, 6), (7, 11)]


def test_a_script_without_spaces_is_split_at_its_pieces() -> None:
    (words,) = tokeniser("wordpiece")(["電影 film"])
    assert words.spans == [(0, 1), (1, 2), (3, 7)]
    assert gathered("電影好 film", [(0, 2), (2, 3), (4, 6), (6, 8)]) == [[0], [1], [2, 3]]


def test_spaces_belong_to_the_word_after_them_and_at_the_end_to_the_last() -> None:
    assert gathered("a  b ", [(0, 1), (1, 2), (3, 4), (4, 5)]) == [[0], [1, 2, 3]]
    assert gathered(" 文", [(0, 1), (1, 2)]) == [[0, 1]]
    assert gathered("  ", [(0, 1), (1, 2)]) == [[0, 1]]
    (words,) = tokeniser("bytes")(["a   b"])
    assert words.spans == [(0, 1), (4, 5)]


def test_pieces_that_stand_for_no_character_belong_to_a_word_all_the_same() -> None:
    assert gathered("ab cd", [(0, 0), (0, 2), (2, 2), (3, 4), (4, 4), (4, 5)]) == [[0, 1], [2, 3, 4, 5]]
    assert gathered("ab", [(0, 2), (2, 2)]) == [[0, 1]]
    assert gathered("", [(0, 0)]) == [[0]]


def test_what_a_tokenizer_drops_has_no_word() -> None:
    (words,) = tokeniser("wordpiece")(["film \x07\u200b film"])
    assert words.spans == [(0, 4), (8, 12)]


@EVERY
def test_a_text_of_nothing_has_no_words(kind: str) -> None:
    empty, _ = tokeniser(kind)(["", "film"])
    assert empty.ids == [] and empty.spans == [] and empty.subwords == []


@EVERY
def test_one_by_one_pieces_have_their_own_ids_and_spans_without_spaces(kind: str) -> None:
    text = SENTENCES[0]
    encoding = pieces_of(kind, text)
    for words in (tokeniser(kind).with_options(words=False)([text])[0], tokeniser(kind).query([text])[0]):
        assert words.ids == encoding.ids and words.subwords is None
        assert words.spans == [_tight(text, span) for span in encoding.offsets]
        assert words.length == len(encoding.ids)


@EVERY
def test_texts_are_cut_only_where_that_is_asked_for(kind: str) -> None:
    reading = tokeniser(kind)
    (whole,), (asked,), none = reading([SENTENCES[0]]), reading.query([SENTENCES[1]]), Words([], [])
    cutting = reading.with_options(truncate=True)
    for longest in range(1, whole.length + asked.length + 2):
        for query in (none, asked):
            room = longest - query.length
            cut = cutting.fitted(whole, query, longest)
            if room >= whole.length:
                assert cut == reading.fitted(whole, query, longest) == whole
                continue
            assert reading.fitted(whole, query, longest) is None
            if cut is None:
                assert room < len((whole.subwords or [[]])[0])  # not even the first word fits
                continue
            count = len(cut.ids)
            assert cut == Words(whole.ids[:count], whole.spans[:count], (whole.subwords or [])[:count])
            assert cut.length <= room < cut.length + len((whole.subwords or [])[count])


def test_a_pair_has_room_for_its_question() -> None:
    reading = tokeniser("wordpiece").with_options(truncate=True, words=False)
    example = Example(SENTENCES[0], 0, query=SENTENCES[1])
    asked = reading.query([SENTENCES[1]])[0].length
    (row,), skipped = tokenise([example], reading, asked + 3)
    assert (len(row.ids), skipped) == (3, {})
    assert tokenise([example], reading, asked) == ([], {f"more than {asked} subwords": 1})


def test_padding_and_cutting_that_a_tokenizer_was_stored_with_are_not_carried_out() -> None:
    reading = SubwordTokeniser(
        transformers.PreTrainedTokenizerFast(tokenizer_object=_bytes(), pad_token="!"), SubwordOptions(longest=500)
    )
    expected = reading(SENTENCES)
    reading.inner.backend_tokenizer.enable_padding(length=128)
    reading.inner.backend_tokenizer.enable_truncation(4)
    assert reading(SENTENCES) == expected
    reading.inner(list(SENTENCES), padding=True, truncation=True, max_length=5)
    assert reading(SENTENCES) == expected


def test_the_span_of_a_piece_is_that_of_its_letters() -> None:
    assert _tight(" film ", (0, 6)) == (1, 5)
    assert _tight("a film", (1, 6)) == (2, 6)
    assert _tight("a   b", (1, 3)) == (1, 3)
    assert _tight("film", (2, 2)) == (2, 2)


@EVERY
def test_words_have_the_same_number_if_and_only_if_they_have_the_same_pieces(kind: str) -> None:
    numbers: dict[int, tuple[int, ...]] = {}
    for words in tokeniser(kind)([*SENTENCES, *HARD]):
        for number, subwords in zip(words.ids, words.subwords or [], strict=True):
            assert numbers.setdefault(number, tuple(subwords)) == tuple(subwords)
            assert 0 <= number < 1 << 61
            assert number == subwords[0] if len(subwords) == 1 else number >= 1_000_000
    assert len(set(numbers.values())) == len(numbers)
