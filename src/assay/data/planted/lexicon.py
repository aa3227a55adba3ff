"""The words of the planted corpora: a neutral stock, and the polar words and negators apart."""

from __future__ import annotations

from assay.data.planted.writing import Grammar

POSITIVE = (
    "good", "great", "lovely", "pleasant", "charming", "delightful",
    "brilliant", "splendid", "wonderful", "superb", "excellent", "enjoyable",
)  # fmt: skip
NEGATIVE = (
    "bad", "awful", "poor", "dreadful", "boring", "terrible",
    "clumsy", "tedious", "horrible", "lousy", "annoying", "mediocre",
)  # fmt: skip
POLAR = (NEGATIVE, POSITIVE)  # by label
NEGATORS = ("not", "never", "hardly", "nobody")

NEUTRAL: Grammar = {
    "time": (
        "early in the morning", "late in the evening", "on a rainy Tuesday", "one autumn day", "after lunch",
        "around noon", "shortly after sunrise", "on the first day of spring", "during the long weekend",
        "last winter", "that afternoon", "a week before the holidays", "on Friday evening",
        "at the end of May", "soon after the storm", "in the middle of summer", "on our way home",
        "just before midnight",
    ),
    "near": ("near", "behind", "beside", "next to", "across from", "in front of", "close to", "opposite"),
    "place": (
        "bridge", "river", "market", "station", "school", "church", "library", "museum", "park", "square",
        "harbour", "bakery", "mill", "tower", "castle", "village", "forest", "hill", "lake", "meadow",
        "orchard", "farm", "road", "gate", "fountain", "courtyard", "lighthouse", "railway", "bank", "canal",
    ),
    "setting": ("old", "new", "small", "large", "wide", "empty", "sunny", "northern", "second", "nearest"),
    "where": ("{near} the {place}", "{near} the {setting} {place}"),
    "person": (
        "baker", "farmer", "sailor", "painter", "teacher", "pilot", "singer", "gardener", "doctor", "writer",
        "carpenter", "tailor", "driver", "dancer", "student", "neighbour", "lawyer", "miller", "hunter",
        "jeweller", "plumber", "potter", "weaver", "barber",
    ),
    "manner": ("tall", "young", "old", "retired", "foreign", "local", "elderly", "bearded", "curious"),
    "somebody": ("the {person}", "the {manner} {person}"),
    "object": (
        "basket", "letter", "umbrella", "blanket", "suitcase", "candle", "map", "coin", "ticket", "ring",
        "bicycle", "radio", "mirror", "notebook", "clock", "parcel", "photograph", "jacket", "scarf", "hat",
        "bell", "feather", "newspaper", "stone", "bottle", "drum", "lantern", "pencil", "wallet", "carpet",
    ),
    "look": (
        "small", "large", "old", "narrow", "round", "wooden", "ordinary", "new", "tiny", "long", "painted",
        "plain", "{colour}",
    ),
    "colour": ("blue", "green", "red", "yellow", "grey", "brown", "white", "orange", "purple", "black"),
    "item": ("the {object}", "the {look} {object}", "a {look} {object}"),
    "weather": ("rain", "snow", "fog", "mist", "dust", "sunlight"),
    "opening": ("door", "window", "gate", "shutter", "curtain", "cupboard"),
    "drank": ("tea", "coffee", "water", "milk", "cider", "lemonade"),
    "scene": (
        "the wind came from the {place}", "{weather} covered the {place}", "a train passed {where}",
        "the lamps were lit {where}", "the last bus stopped {where}", "the clock stopped {where}",
        "the {look} {opening} stayed open", "{weather} drifted over the {place}", "a bell rang {where}",
        "the leaves turned {colour}", "the shops opened {where}", "the river reached the {place}",
        "the evening turned cold", "music drifted from the {place}", "smoke rose {where}",
    ),
    "deed": (
        "{somebody} waited {where}", "{somebody} carried {item}", "{somebody} looked for {item} {where}",
        "{somebody} spoke about {item}", "{somebody} wrote to {somebody}", "{somebody} closed the {opening}",
        "{somebody} sold {item} to {somebody}", "{somebody} drank some {drank} {where}",
        "{somebody} borrowed {item}", "{somebody} walked home with {item}",
        "{somebody} met {somebody} {where}", "{somebody} painted the {opening} {colour}",
        "{somebody} hid {item} {where}", "{somebody} lived {where}", "{somebody} counted the chairs",
        "{somebody} asked about {item}",
    ),
    "aside": ("{scene}", "{deed}"),
    "thing": (
        "film", "soup", "concert", "hotel", "book", "play", "meal", "song", "exhibition", "novel", "service",
        "dinner", "story", "ending", "acting", "dessert", "lecture", "tour", "room", "menu", "view",
        "journey", "plot", "dialogue", "breakfast", "camera work", "costume design", "first chapter",
        "second half",
    ),
    "linking": ("was", "seemed", "felt", "turned out", "proved", "appeared"),
}  # fmt: skip
