#!/usr/bin/env python3
"""Writes unicode-names.tsv: code point, name and general category of characters.

The data are those of the Unicode Character Database as Python carries them in its module
`unicodedata`; run it with the Python whose `unicodedata.unidata_version` you want.
"""

import sys
import unicodedata

# Left out to keep the file small: the ranges whose names follow from the code point alone
# (CJK unified and compatibility ideographs, Hangul syllables, Tangut, Khitan and Nushu).
DERIVED = ("CJK UNIFIED", "CJK COMPATIBILITY", "HANGUL SYLLABLE", "TANGUT", "KHITAN", "NUSHU")


def main() -> None:
    """Prints one line a character, in the order of the code points."""
    out = sys.stdout
    for code in range(0x20, 0x110000):
        character = chr(code)
        name = unicodedata.name(character, None)
        if name is not None and not name.startswith(DERIVED):
            # Six digits each, so that the order of the texts is the order of the numbers.
            out.write(f"U+{code:06X}\t{name}\t{unicodedata.category(character)}\n")


if __name__ == "__main__":
    main()
