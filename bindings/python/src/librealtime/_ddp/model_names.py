"""The names that collections and fields have unless a model says otherwise (M18).

| in the model | in the documents |
|---|---|
| the class ``TodoItem`` | the collection ``todoItems`` |
| the field ``text`` | the field ``text`` |
| a relationship to one object, ``list`` | the field ``listId`` |
| a relationship to many objects, ``categories`` | the field ``categoryIds`` |
"""

from __future__ import annotations

#: Nouns that no rule covers.
_EXCEPTIONS = """
    person people, child children, man men, woman women, mouse mice, ox oxen, index indices,
    vertex vertices, matrix matrices, tomato tomatoes, potato potatoes, hero heroes, echo echoes,
    leaf leaves, datum data, medium media, criterion criteria, quiz quizzes, bus buses,
    status statuses, alias aliases, bonus bonuses, virus viruses, campus campuses, canvas canvases,
    atlas atlases, gas gases, lens lenses, menu menus, guru gurus
"""
#: Nouns in ``ie``, whose plural looks like that of a noun in ``y``, and in ``che``.
_REGULAR = "movie cookie zombie selfie calorie pie tie cache database"
#: Nouns that are their own plural.
_UNCHANGING = "news series species sheep fish money equipment information rice jeans data media"

_WORDS: list[tuple[str, str]] = [
    *((one, many) for one, many in (pair.split() for pair in _EXCEPTIONS.split(","))),
    *((one, one + "s") for one in _REGULAR.split()),
    *((one, one) for one in _UNCHANGING.split()),
]


def collection_of(name: str) -> str:
    """The collection of a class: its plural, with its first letter in lower case."""
    return plural(name[:1].lower() + name[1:]) if name else ""


def field_of(relationship: str, is_to_many: bool) -> str:
    """The field of a relationship."""
    return singular(relationship) + ("Ids" if is_to_many else "Id")


def plural(name: str) -> str:
    """The plural of an English noun, by the rules that cover most names in programs. The last word
    of a name such as ``todoItem`` counts."""
    known = _replace_last_word(name, _WORDS)
    if known is not None:
        return known
    if name.endswith("y") and len(name) > 1 and not _is_vowel(name[-2]):
        return name[:-1] + "ies"
    if name.endswith("sis"):
        return name[:-2] + "es"
    if name.endswith("fe") and not name.endswith("ffe"):
        return name[:-2] + "ves"
    if name.endswith(("lf", "rf")):
        return name[:-1] + "ves"
    return name + ("es" if name.endswith(("s", "x", "z", "ch", "sh")) else "s")


def singular(name: str) -> str:
    """The singular of a plural; other names stay as they are."""
    known = _replace_last_word(name, [(many, one) for one, many in _WORDS])
    if known is not None:
        return known
    # A singular that ends as a plural does, such as ``status``.
    if _replace_last_word(name, _WORDS) is not None or name.endswith(("ss", "us", "sis")):
        return name
    # ``viruses``, but ``houses`` and ``causes``.
    is_uses = name.endswith("uses") and len(name) > 4 and not _is_vowel(name[-5])
    for suffixes, cut, end in (
        (("ies",) if len(name) > 3 else (), 3, "y"),
        (("lyses", "crises", "theses", "gnoses"), 2, "is"),
        (("lves", "rves"), 3, "f"),
        (("nives", "wives", "lives"), 3, "fe"),
        (("sses", "xes", "ches", "shes", "zzes"), 2, ""),
        (("uses",) if is_uses else (), 2, ""),
        (("s",), 1, ""),
    ):
        if suffixes and name.endswith(suffixes):
            return name[:-cut] + end
    return name


def _is_vowel(letter: str) -> bool:
    return letter.lower() in "aeiou"


def _replace_last_word(name: str, words: list[tuple[str, str]]) -> str | None:
    for word, replacement in words:
        if name == word:
            return replacement
        if name.endswith(word[0].upper() + word[1:]):
            return name[: -len(word)] + replacement[0].upper() + replacement[1:]
    return None
