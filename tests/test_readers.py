"""Files as people have them: what is read from them, and what is said about the rest. All are real files."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag import files, readers
from rag.errors import InputError
from rag.readers import SIDE_COLUMNS, Reading, read
from rag.records import Paper
from rag.text import paper_id

ONE = "We study gradient descent on wide networks. It converges at a linear rate in 17 steps on every task."
TWO = "We measure how zebra stripes repel horseflies. Flies landed 74% less often on coats that were striped."
LONG = f"{ONE} {TWO}"
HEADER = ",".join(SIDE_COLUMNS)


def text_file(folder: Path, content: str | bytes = f"ICML 2024 Papers\n\n{ONE}\n\n{TWO}\n", name: str = "a.txt") -> Path:
    file = folder / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


def jsonl(folder: Path, *rows: object, name: str = "a.jsonl") -> Path:
    return text_file(folder, "\n".join(r if isinstance(r, str) else json.dumps(r) for r in rows), name)


def side(folder: Path, *rows: str, header: str = HEADER) -> None:
    (folder / "papers.csv").write_text("\n".join((header, *rows)))


def texts(reading: Reading) -> list[str]:
    return [p.text for p in reading.papers]


# The seeds -------------------------------------------------------------------------------------------------------------


def test_every_seed_has_its_names_and_nothing_needs_to_be_said(seeds: Path) -> None:
    reading = read(seeds)
    assert len(reading.papers) == len({p.id for p in reading.papers}) == 95
    assert reading.notices == ()
    assert all(p.title and p.authors and p.url and p.venue in ("ICLR", "ICML") and p.year == 2024 for p in reading.papers)


def test_a_seed_is_named_by_its_own_row(seeds: Path) -> None:
    papers = {p.title: p for p in read(seeds).papers}
    billm = next(p for title, p in papers.items() if title and title.startswith("BiLLM"))
    assert "8.41 perplexity on LLaMA2-70B" in billm.text
    assert billm.label.endswith("ICML 2024")
    assert billm.authors[0] == "Wei Huang"


# Text files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first_line", "venue", "year"),
    [
        ("ICML 2024 Papers", "ICML", 2024),
        ("NeurIPS, 2019", "NeurIPS", 2019),
        ("Conference on Robot Learning 2021 abstracts", "Conference on Robot Learning", 2021),
        ("﻿ICLR 2024 Papers", "ICLR", 2024),
    ],
)
def test_venue_and_year_come_from_the_first_line(tmp_path: Path, first_line: str, venue: str, year: int) -> None:
    reading = read(text_file(tmp_path, f"{first_line}\n\n{ONE}\n\n{TWO}"))
    assert [(p.venue, p.year, p.origins[0].position) for p in reading.papers] == [(venue, year, 1), (venue, year, 2)]
    assert reading.notices == ()


def test_a_heading_that_touches_its_first_abstract_is_still_a_heading(tmp_path: Path) -> None:
    reading = read(text_file(tmp_path, f"ICML 2024 Papers\n{ONE}\n\n{TWO}"))
    assert texts(reading) == [ONE, TWO]
    assert reading.papers[0].venue == "ICML"


def test_without_a_venue_line_no_abstract_is_lost_and_it_is_said(tmp_path: Path) -> None:
    reading = read(text_file(tmp_path, f"{ONE}\n\n{TWO}"))
    assert texts(reading) == [ONE, TWO]
    assert reading.papers[0].venue is reading.papers[0].year is None
    assert reading.notices == ("a.txt: the first line names no venue and year, so its papers carry none.",)


def test_an_abstract_pasted_over_several_lines_is_one_paper(tmp_path: Path) -> None:
    wrapped = LONG.replace(". ", ".\n")
    assert texts(read(text_file(tmp_path, f"ICML 2024\n\n{wrapped}\n\n{TWO}"))) == [wrapped, TWO]


def test_a_line_that_ends_in_a_year_is_a_heading_only_at_the_top(tmp_path: Path) -> None:
    wrapped = f"We look back on ImageNet, 2012\n{TWO}"
    assert texts(read(text_file(tmp_path, f"ICML 2024\n\n{ONE}\n\n{wrapped}"))) == [ONE, wrapped]


def test_abstracts_without_a_blank_line_between_them_are_taken_apart_and_it_is_said(tmp_path: Path) -> None:
    other = f"{TWO} {ONE}"
    reading = read(text_file(tmp_path, f"ICML 2024\n{LONG}\n{other}\n"))
    assert texts(reading) == [LONG, other]
    assert reading.notices == ("a.txt: a paragraph of 2 long lines was read as 2 abstracts.",)


def test_a_stray_heading_is_left_out_and_keeps_its_position(tmp_path: Path) -> None:
    reading = read(text_file(tmp_path, f"ICML 2024\n\n{ONE}\n\nPage 2\n\n{TWO}"))
    assert [p.origins[0].position for p in reading.papers] == [1, 3]
    assert reading.notices == ("a.txt, paragraph 2, left out: too short for an abstract.",)


PLAIN = f"ICML 2024 Papers\n\n{ONE}\n\nCafé naïve “quotes”. {TWO}\n"


@pytest.mark.parametrize(
    "content",
    [PLAIN.replace("\n", "\r\n").encode(), PLAIN.replace("\n", "\r").encode(), PLAIN.encode("utf-8-sig")]
    + [PLAIN.encode(e) for e in ("utf-16", "utf-32")]
    + [b"\xfe\xff" + PLAIN.encode("utf-16-be")],
    ids=["CRLF", "CR", "BOM", "UTF-16", "UTF-32", "UTF-16 big-endian"],
)
def test_line_ends_and_encodings_change_nothing(tmp_path: Path, content: bytes) -> None:
    reading = read(text_file(tmp_path, content))
    assert texts(reading) == [ONE, f"Café naïve “quotes”. {TWO}"]
    assert (reading.papers[0].venue, reading.notices) == ("ICML", ())


def test_latin_1_is_read_and_the_guess_is_told(tmp_path: Path) -> None:
    reading = read(text_file(tmp_path, PLAIN.encode("cp1252")))
    assert texts(reading)[1].startswith("Café naïve “quotes”.")
    assert reading.notices == ("a.txt is not UTF-8; it was read as Windows-1252 (Latin-1).",)


# The side file ---------------------------------------------------------------------------------------------------------

GOOD = "a.txt,1,A Title,Jane Doe; John Roe,ICML,2024,https://a.org/1"
GOOD_2 = "a.txt,2,Another,Ann Lee,ICML,2024,https://a.org/2"


@pytest.mark.parametrize(
    ("row", "notice"),
    [
        ("b.txt,1,X,Y,ICML,2024,", "papers.csv, line 2: there is no file 'b.txt' beside it."),
        ("../a.txt,1,X,Y,ICML,2024,", "papers.csv, line 2: there is no file '../a.txt' beside it."),
        (f"{'b' * 300},1,X,Y,ICML,2024,", f"papers.csv, line 2: there is no file '{'b' * 120}…' beside it."),
        ("a.txt,3,X,Y,ICML,2024,", "papers.csv, line 2: a.txt has no abstract '3'."),
        ("a.txt,0,X,Y,ICML,2024,", "papers.csv, line 2: a.txt has no abstract '0'."),
        ("a.txt,one,X,Y,ICML,2024,", "papers.csv, line 2: a.txt has no abstract 'one'."),
        (f"a.txt,{'9' * 5000},X,Y,ICML,2024,", f"papers.csv, line 2: a.txt has no abstract '{'9' * 120}…'."),
        ("a.txt,²,X,Y,ICML,2024,", "papers.csv, line 2: a.txt has no abstract '²'."),
        ("a.txt,1,X, Y,Z,ICML,2024,", "papers.csv, line 2: it has more fields than the heading; put quotes around what holds a comma."),
        ("a.txt,1,X", "papers.csv, line 2: it has fewer fields than the heading; put quotes around what holds a comma."),
        ("a.\x1b[31mtxt,1,X,Y,ICML,2024,", "papers.csv, line 2: there is no file 'a.txt' beside it."),
    ],
)
def test_a_row_that_matches_nothing_is_reported_and_the_others_hold(tmp_path: Path, row: str, notice: str) -> None:
    side(tmp_path, row, GOOD, GOOD_2)
    reading = read(text_file(tmp_path))
    assert reading.notices == (notice,)
    assert [(p.title, p.authors) for p in reading.papers] == [("A Title", ("Jane Doe", "John Roe")), ("Another", ("Ann Lee",))]


@pytest.mark.parametrize(
    ("row", "notice", "known"),
    [
        (GOOD.replace("2024", "20x4"), "its year '20x4' is no year and was dropped", ("A Title", 2024, "https://a.org/1")),
        (GOOD.replace("2024", "1824"), "its year '1824' is no year and was dropped", ("A Title", 2024, "https://a.org/1")),
        (GOOD.replace("https", "javascript"), "its url 'javascript://a.org/1' is no web address and was dropped", ("A Title", 2024, None)),
        (GOOD.replace("2024", "2023"), "says ICML 2023, the first line of a.txt ICML 2024; the row holds", ("A Title", 2023, "https://a.org/1")),
        (GOOD.replace("ICML", "ICLR"), "says ICLR 2024, the first line of a.txt ICML 2024; the row holds", ("A Title", 2024, "https://a.org/1")),
    ],
)
def test_a_doubtful_value_is_reported_and_the_rest_of_its_row_holds(tmp_path: Path, row: str, notice: str, known: tuple[object, ...]) -> None:
    side(tmp_path, row, GOOD_2)
    reading = read(text_file(tmp_path))
    assert reading.notices == (f"papers.csv, line 2: {notice}.",)
    first = reading.papers[0]
    assert (first.title, first.year, first.url) == known


def test_a_paper_named_twice_keeps_its_first_name(tmp_path: Path) -> None:
    side(tmp_path, GOOD, GOOD.replace("A Title", "Other"), GOOD_2)
    reading = read(text_file(tmp_path))
    assert reading.papers[0].title == "A Title"
    assert reading.notices == ("papers.csv, line 3: a.txt 1 is named twice; the first holds.",)


def test_papers_that_no_row_names_are_told(tmp_path: Path) -> None:
    side(tmp_path, GOOD)
    reading = read(text_file(tmp_path))
    assert reading.papers[1].title is None
    assert reading.notices == ("papers.csv does not name a.txt 2.",)


@pytest.mark.parametrize(
    ("content", "notice"),
    [
        (HEADER.replace(",venue", "").encode(), "papers.csv lacks the column venue. It names no paper of a.txt."),
        (b"", "papers.csv is empty. It names no paper of a.txt."),
        (bytes(range(256)) * 4, "papers.csv is not text. It names no paper of a.txt."),
        (f'{HEADER}\n{GOOD}\na.txt,2,"Open'.encode(), "papers.csv, line 3: unexpected end of data; the rows from there on were not read."),
        (
            f"{HEADER}\n{GOOD}\na.txt,2,{'x' * 200_000}".encode(),
            "papers.csv, line 3: field larger than field limit (131072); the rows from there on were not read.",
        ),
    ],
    ids=["missing column", "empty", "binary", "quote left open", "huge field"],
)
def test_a_broken_side_file_costs_the_names_but_no_abstract(tmp_path: Path, content: bytes, notice: str) -> None:
    (tmp_path / "papers.csv").write_bytes(content)
    reading = read(text_file(tmp_path))
    assert texts(reading) == [ONE, TWO]
    assert any(notice in n for n in reading.notices)
    assert reading.notices[-1].startswith("papers.csv does not name a.txt ")


def test_rows_of_other_files_beside_it_are_nobodys_mistake(tmp_path: Path) -> None:
    text_file(tmp_path, f"ICLR 2023\n\n{LONG}", "b.txt")
    side(tmp_path, GOOD, GOOD_2, "b.txt,1,Third,Z,ICLR,2023,")
    text_file(tmp_path)
    reading = read(tmp_path)
    assert [p.title for p in reading.papers] == ["A Title", "Another", "Third"]
    assert reading.notices == ()


def test_one_mistake_in_a_folder_is_told_once(tmp_path: Path) -> None:
    text_file(tmp_path, f"ICLR 2023\n\n{LONG}", "b.txt")
    side(tmp_path, GOOD, GOOD_2, "b.txt,1,Third,Z,ICLR,2023,", "gone.txt,1,X,Y,ICML,2024,")
    text_file(tmp_path)
    assert read(tmp_path).notices == ("papers.csv, line 5: there is no file 'gone.txt' beside it.",)


# JSON lines ------------------------------------------------------------------------------------------------------------


def one(folder: Path, **fields: object) -> Paper:
    reading = read(jsonl(folder, {"text": ONE, **fields}))
    assert reading.notices == ()
    return reading.papers[0]


def test_every_field_of_a_json_line_is_kept(tmp_path: Path) -> None:
    paper = one(tmp_path, id=7, title=" Deep\n  Nets ", authors=["A. Uthor", "Doe, Jane"], venue="ICML", year=2024, url="https://a.org/x?y=1")
    assert paper == Paper(
        paper_id(ONE), ONE, paper.origins, title="Deep Nets", authors=("A. Uthor", "Doe, Jane"), venue="ICML", year=2024, url="https://a.org/x?y=1"
    )
    assert (paper.source_id, paper.origins[0].file, paper.origins[0].position) == ("7", "a.jsonl", 1)


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        ({"abstract": TWO}, TWO),
        ({"text": None, "abstract": TWO}, TWO),
        ({"text": "  ", "abstract": TWO}, TWO),
        ({"text": ["no", "text"], "abstract": TWO}, TWO),
        ({"text": ONE, "abstract": TWO}, ONE),
        ({"text": "Short."}, "Short."),
    ],
)
def test_the_abstract_may_be_called_text_or_abstract(tmp_path: Path, fields: dict[str, object], want: str) -> None:
    assert texts(read(jsonl(tmp_path, fields))) == [want]


@pytest.mark.parametrize(
    ("given_authors", "want"),
    [
        (["Jane Doe", " John  Roe "], ("Jane Doe", "John Roe")),
        ("Jane Doe; John Roe", ("Jane Doe", "John Roe")),
        ("Jane Doe and John Roe", ("Jane Doe", "John Roe")),
        ("Jane Doe, John Roe, and Ann Lee", ("Jane Doe", "John Roe", "Ann Lee")),
        ("Doe, Jane and Roe, John", ("Doe, Jane", "Roe, John")),
        ("Doe, Jane; Roe, John", ("Doe, Jane", "Roe, John")),
        ("Plato", ("Plato",)),
        (["Jane Doe", None, ""], ("Jane Doe",)),
        ([], ()),
        ("", ()),
        (None, ()),
    ],
)
def test_authors_come_as_a_list_or_as_a_string(tmp_path: Path, given_authors: object, want: tuple[str, ...]) -> None:
    assert one(tmp_path, authors=given_authors).authors == want


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        ({"venue": "ICLR 2024"}, ("ICLR", 2024)),
        ({"venue": "ICLR 2024", "year": 2024}, ("ICLR", 2024)),
        ({"venue": "ICLR 2024", "year": 2023}, ("ICLR 2024", 2023)),
        ({"venue": "ICLR", "year": "2024"}, ("ICLR", 2024)),
        ({"venue": "ICLR", "year": 2024.0}, ("ICLR", 2024)),
        ({"venue": "", "year": None}, (None, None)),
    ],
)
def test_venue_and_year_are_told_apart(tmp_path: Path, fields: dict[str, object], want: tuple[object, object]) -> None:
    paper = one(tmp_path, **fields)
    assert (paper.venue, paper.year) == want


def test_nan_is_nothing_as_pandas_means_it(tmp_path: Path) -> None:
    reading = read(jsonl(tmp_path, f'{{"text": "{ONE}", "title": NaN, "authors": NaN, "year": NaN, "venue": NaN, "url": NaN}}'))
    assert (reading.papers[0].title, reading.papers[0].authors, reading.papers[0].year, reading.notices) == (None, (), None, ())


@pytest.mark.parametrize(
    ("field", "value", "notice"),
    [
        ("url", "javascript:alert(1)", "its url 'javascript:alert(1)' is no web address and was dropped"),
        ("url", "file:///etc/passwd", "its url 'file:///etc/passwd' is no web address and was dropped"),
        ("url", 'https://a.org/"onclick', "its url 'https://a.org/\"onclick' is no web address and was dropped"),
        ("url", "https://a.org/\x1b]0;pwn\x07", "its url 'https://a.org/' is no web address and was dropped"),
        ("url", ["https://a.org"], "its url is no web address and was dropped"),
        ("year", 20244, "its year '20244' is no year and was dropped"),
        ("year", 10**400, f"its year '1{'0' * 119}…' is no year and was dropped"),
        ("year", float("inf"), "its year 'inf' is no year and was dropped"),
        ("title", {"en": "X"}, "its title is no text and was dropped"),
        ("authors", {"name": "X"}, "its authors is no list of names and was dropped"),
    ],
)
def test_a_field_of_the_wrong_kind_is_dropped_and_told(tmp_path: Path, field: str, value: object, notice: str) -> None:
    reading = read(jsonl(tmp_path, {"text": ONE, field: value}))
    assert not getattr(reading.papers[0], field)
    assert reading.notices == (f"a.jsonl, line 1: {notice}.",)


@pytest.mark.parametrize(
    ("line", "notice"),
    [
        ("{broken", "not JSON"),
        ("[1, 2]", "not an object"),
        ("3", "not an object"),
        ("null", "not an object"),
        ("NaN", "not an object"),
        ("1" * 5000, "not JSON"),
        ("[" * 100_000, "not JSON"),
        ('{"a":' * 100_000, "not JSON"),
        ('{"title": "no text"}', "no text or abstract"),
        ('{"text": "--- ... ---"}', "it holds no words"),
        (json.dumps({"text": "word " * 5000}), "24,999 characters are too long for an abstract"),
    ],
    ids=lambda v: v[:20],
)
def test_a_bad_line_is_told_by_its_number_and_the_others_are_read(tmp_path: Path, line: str, notice: str) -> None:
    reading = read(jsonl(tmp_path, {"text": ONE}, "", line, {"text": TWO}))
    assert texts(reading) == [ONE, TWO]
    assert reading.notices == (f"a.jsonl, line 3, left out: {notice}.",)


def test_deep_nesting_in_a_field_is_dropped_like_any_other_nonsense(tmp_path: Path) -> None:
    for depth in range(900, 1000, 7):
        assert texts(read(jsonl(tmp_path, f'{{"text": "{ONE}", "url": {"[" * depth + "]" * depth}}}', {"text": TWO})))[-1] == TWO


def test_a_lone_surrogate_cannot_stop_an_ingest_later(tmp_path: Path) -> None:
    paper = read(jsonl(tmp_path, f'{{"text": "{ONE} \\ud800", "title": "\\udfff", "id": "\\ud800", "authors": ["\\ud800"]}}')).papers[0]
    for stored in (paper.text, paper.title or "", paper.source_id or "", *paper.authors):
        assert stored.encode()


def test_notices_of_a_hopeless_file_do_not_flood_the_terminal(tmp_path: Path) -> None:
    reading = read(jsonl(tmp_path, {"text": ONE}, *["nonsense"] * 1000))
    assert len(reading.notices) == readers.MAX_NOTICES + 1
    assert reading.notices[-1] == "a.jsonl: 980 more notices like these."


def test_gzip_is_unpacked_whatever_the_format(tmp_path: Path) -> None:
    (tmp_path / "a.JSONL.gz").write_bytes(gzip.compress(json.dumps({"text": ONE}).encode()))
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(f"ICML 2024\n\n{TWO}".encode()))
    assert texts(read(tmp_path)) == [ONE, TWO]


# What is no file of abstracts ------------------------------------------------------------------------------------------


def _gz(content: bytes) -> bytes:
    return gzip.compress(content)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.txt", b"", "is empty"),
        ("a.txt", b" \n\t\n", "is empty"),
        ("a.jsonl", b"", "is empty"),
        ("a.txt", b"ICML 2024 Papers\n", "holds no abstract"),
        ("a.txt", b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40, "is not text"),
        ("a.txt", bytes(x * x % 251 for x in range(4000)), "is not text"),
        ("a.txt", "text".encode("utf-16-le") * 100, "is not text"),
        ("a.txt", b"\xff\xfea\x00b", "is not the UTF-16 text that it says it is"),
        ("a.pdf", b"%PDF-1.7", "is of no known format. Known are .txt, .jsonl, .ndjson, each also gzipped (.gz)."),
        ("a", b"text", "is of no known format"),
        ("papers.csv", b"file\n", "names papers but holds none"),
        ("a.jsonl.gz", b"no gzip", "cannot be read: it is damaged"),
        ("a.jsonl.gz", _gz(b'{"text": "x"}' * 99)[:-9], "cannot be read: it is damaged"),
        ("a.jsonl.gz", _gz(b'{"text": "x"}' * 99)[:20] + b"\xff" * 20, "cannot be read: it is damaged"),
        ("a.jsonl", b"not json\n", "holds no abstract (a.jsonl, line 1, left out: not JSON)."),
    ],
)
def test_a_file_without_abstracts_is_refused_in_words(tmp_path: Path, name: str, content: bytes, says: str) -> None:
    with pytest.raises(InputError) as refused:
        read(text_file(tmp_path, content, name))
    assert says in str(refused.value)
    assert refused.value.hint


def test_a_file_of_50_mb_that_is_one_paragraph_is_refused_not_indexed(tmp_path: Path) -> None:
    file = text_file(tmp_path, (ONE + "\n").encode() * (50_000_000 // len(ONE)))
    with pytest.raises(InputError, match=r"holds no abstract \(.*characters are too long for an abstract\)"):
        read(file)


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_beyond_the_limit_is_refused_before_it_fills_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: bool) -> None:
    monkeypatch.setattr(files, "MAX_FILE_BYTES", 1_000_000)
    content = b" " * 1_000_001
    with pytest.raises(InputError, match="holds more than 1 MB"):
        read(text_file(tmp_path, _gz(content) if packed else content, "a.txt.gz" if packed else "a.txt"))


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("missing.txt", "missing.txt does not exist"),
        ("missing", "missing does not exist"),
        ("file.txt/inside.txt", "cannot be read: Not a directory"),
        ("x" * 300, "cannot be read: File name too long"),
        ("a\0b.txt", "cannot be read: it is no path"),
        ("folder.txt", "holds no file of a known format"),
        ("fifo.txt", "is no file"),
        ("\x1b[31mred.txt", "/red.txt does not exist"),
    ],
)
def test_a_path_that_cannot_be_read_is_named_with_the_reason(tmp_path: Path, path: str, says: str) -> None:
    text_file(tmp_path, name="file.txt")
    (tmp_path / "folder.txt").mkdir()
    os.mkfifo(tmp_path / "fifo.txt")
    with pytest.raises(InputError) as refused:
        read(tmp_path / path)
    assert says in refused.value.message
    assert "\x1b" not in str(refused.value)


def test_a_folder_of_other_files_is_refused_and_one_good_file_saves_it(tmp_path: Path) -> None:
    for name in ("a.pdf", "b.pdf"):
        text_file(tmp_path, b"%PDF-1.7", name)
    with pytest.raises(InputError, match="holds no file of a known format"):
        read(tmp_path)
    text_file(tmp_path, b"", "c.txt")
    with pytest.raises(InputError, match=r"No file in .* could be read"):
        read(tmp_path)
    (tmp_path / "deeper").mkdir()
    text_file(tmp_path / "deeper")
    reading = read(tmp_path)
    assert texts(reading) == [ONE, TWO]
    assert [n.partition(" left out")[0] for n in reading.notices] == ["a.pdf", "b.pdf", "c.txt"]


def test_hidden_files_and_folders_are_not_the_users_papers(tmp_path: Path) -> None:
    (tmp_path / ".venv").mkdir()
    text_file(tmp_path / ".venv", f"ICML 2024\n\n{LONG}")
    text_file(tmp_path, b"junk", ".hidden.txt")
    text_file(tmp_path)
    assert texts(read(tmp_path)) == [ONE, TWO]


def test_file_names_cannot_act_on_the_terminal(tmp_path: Path) -> None:
    text_file(tmp_path, f"{ONE}\n\nshort", "\x1b]0;pwned\x07a\nb\x9b31m.txt")
    for notice in read(tmp_path).notices:
        assert notice.isprintable()


def test_a_file_name_that_is_not_utf_8_is_read_like_any_other(tmp_path: Path) -> None:
    file = os.fsencode(tmp_path) + b"/caf\xe9.txt"
    Path(os.fsdecode(file)).write_text(f"{ONE}\n\nshort")
    reading = read(tmp_path)
    assert reading.papers[0].origins[0].file.encode() == "caf\N{REPLACEMENT CHARACTER}.txt".encode()
    assert "".join(reading.notices).encode()


JSONISH = st.lists(
    st.dictionaries(
        st.sampled_from(["text", "abstract", "title", "authors", "venue", "year", "url", "id"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(), v, max_size=3)
        ),
    )
).map(lambda rows: "\n".join(json.dumps(r) for r in rows).encode())


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.binary(max_size=400) | st.text(max_size=400).map(str.encode) | JSONISH,
    name=st.sampled_from(["a.txt", "a.jsonl", "a.jsonl.gz"]),
    named=st.booleans(),
)
def test_any_bytes_give_papers_or_an_input_error(tmp_path: Path, content: bytes, name: str, named: bool) -> None:
    file = text_file(tmp_path, _gz(content) if name.endswith(".gz") else content, name)
    (tmp_path / "papers.csv").write_bytes(f"{HEADER}\na.txt,1,".encode() + content if named else HEADER.encode())
    try:
        reading = read(file)
    except InputError as error:
        told = (error.message,)
    else:
        told = reading.notices
        for paper in reading.papers:
            assert paper.text.strip() == paper.text != ""
            assert repr(paper).encode()
    assert all(line.isprintable() for line in told)
