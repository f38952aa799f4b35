#!/usr/bin/env python3
"""Makes the lists of this folder; README.md names the sources of its input.

    make-email-lists.py CENSUS_FOLDER GIT_REPOSITORY

CENSUS_FOLDER has the files of the name lists of the 1990 census of the United States;
GIT_REPOSITORY is a clone with its whole history. Only counts leave the history: no name and no
address, and no domain that fewer than LEAST_ADDRESSES of its addresses have.
"""

import collections
import pathlib
import re
import subprocess
import sys
import unicodedata

LEAST_ADDRESSES = 5
# "com.au" is an ending of domains, "example.com" is not.
LONGEST_SECOND_LEVEL = 6
# Not mailboxes, or made by the version control system.
NO_MAILBOX = re.compile(r"(^|\.)noreply\.|\.local$|\.lan$|\.localdomain$|localhost|\(none\)")
HERE = pathlib.Path(__file__).parent


def census(folder, name):
    """Names in lower case with their frequency in thousandths of a percent."""
    for line in (folder / name).read_text().splitlines():
        word, share, *_ = line.split()
        yield word.lower(), round(float(share) * 1000)


def write(name, rows):
    text = "".join(f"{word}\t{count}\n" for word, count in rows)
    (HERE / name).write_text(text)


def ranked(counter, least=1):
    return [(word, count) for word, count in counter.most_common() if count >= least]


def ascii_words(name):
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.findall(r"[a-z]+", plain)


def pattern(local, name):
    """How the local part is made from the person's name; "{word}" where it is not."""
    words = ascii_words(name)
    if len(words) < 2:
        return "{word}"
    first, last = words[0], words[-1]
    forms = {
        "{first}": first,
        "{last}": last,
        "{first}{last}": first + last,
        "{last}{first}": last + first,
        "{f}{last}": first[0] + last,
        "{first}{l}": first + last[0],
        "{last}{f}": last + first[0],
        "{f}{l}": first[0] + last[0],
    }
    bare = re.sub(r"[._-]", "", local)
    for form, text in forms.items():
        if bare == text:
            marks = re.findall(r"[._-]", local)
            if marks and form.count("{") == 2:
                form = form.replace("}{", "}" + marks[0] + "{")
            return form
    return "{word}"


def main():
    census_folder, repository = pathlib.Path(sys.argv[1]), sys.argv[2]
    given = collections.Counter()
    for name in ("dist.female.first", "dist.male.first"):
        for word, share in census(census_folder, name):
            given[word] += share
    write("given-names.tsv", ranked(given))
    surnames = collections.Counter(dict(census(census_folder, "dist.all.last")))
    # The rarest of the list have the share 0, which is less than half a thousandth of a percent.
    write("surnames.tsv", ranked(surnames, least=1))

    log = subprocess.run(
        ["git", "-C", repository, "log", "--format=%ae\t%an"],
        check=True, capture_output=True, text=True, errors="replace",
    ).stdout
    people = {}
    for line in log.splitlines():
        address, name = line.lower().split("\t", 1)
        if re.fullmatch(r"[a-z0-9._+-]+@[a-z0-9-]+(\.[a-z0-9-]+)*\.[a-z]{2,}", address):
            if not NO_MAILBOX.search(address.split("@")[1]):
                people[address] = name
    domains = collections.Counter(address.split("@")[1] for address in people)
    common = dict(ranked(domains, LEAST_ADDRESSES))
    endings, labels = collections.Counter(), collections.Counter()
    patterns, numbers, words = (collections.Counter() for _ in range(3))
    for address, name in people.items():
        local, domain = address.split("@")
        if domain not in common:
            ending = domain.split(".", 1)[1]
            if "." in ending and len(ending) > LONGEST_SECOND_LEVEL:
                # A host within the domain of somebody: what counts as its ending is the last word.
                ending = ending.rsplit(".", 1)[1]
            endings[ending] += 1
            labels[len(domain) - len(ending) - 1] += 1
        local = local.split("+")[0]
        stem = local.rstrip("0123456789")
        numbers[len(local) - len(stem)] += 1
        form = pattern(stem, name)
        patterns[form] += 1
        if form == "{word}":
            words[len(stem)] += 1
    others = sum(endings.values())
    write("domains.tsv", ranked(domains, LEAST_ADDRESSES) + [("{other}", others)])
    write("domain-endings.tsv", ranked(endings, LEAST_ADDRESSES))
    write("domain-label-lengths.tsv", sorted(labels.items()))
    write("local-parts.tsv", ranked(patterns, LEAST_ADDRESSES))
    write("word-lengths.tsv", sorted((n, c) for n, c in words.items() if n > 0))
    write("number-lengths.tsv", sorted((n, c) for n, c in numbers.items() if n <= 6))


main()
