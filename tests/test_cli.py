"""The command line as a user runs it: what it prints where, and its exit codes."""

from __future__ import annotations

import json
import re
import select
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command import BRAINLM, environment, on_terminal
from tests.conftest import ASK, AskRun, Main, clean_environment

HEAVY = ("chromadb", "llama_index", "onnxruntime", "gradio", "openai", "bm25s")
BIBTEX = re.compile(r"(@inproceedings\{\w+,\n(  \w+ = \{.*\},\n)+\}\n\n?)+")


# Start-up and arguments ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("args", [["--help"], ["--version"], [""], ["ingest", "--help"]], ids=" ".join)
def test_help_and_wrong_usage_load_nothing_heavy(args: list[str]) -> None:
    code = (
        f"import sys\nsys.argv = ['ask', *{args!r}]\nfrom rag.cli import main\n"
        "try:\n    main()\nexcept SystemExit as e:\n    code = e.code\n"
        f"print('loaded', code, [m for m in {HEAVY!r} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=clean_environment(), timeout=60, check=True)
    assert done.stdout.splitlines()[-1] == f"loaded {0 if args != [''] else 2} []"


def test_help_shows_the_options_of_asking_and_every_command(run: Main) -> None:
    code, out, _ = run("--help")
    assert code == 0
    for word in ("--json", "--session", "--collection", "search", "ingest", "show", "status", "doctor", "sessions", "chat", "ui", "Examples:"):
        assert word in out


@pytest.mark.parametrize(
    ("args", "question"),
    [
        (["--json", BRAINLM], BRAINLM),
        ([BRAINLM, "--json"], BRAINLM),
        (["--json", *BRAINLM.split()], BRAINLM),
        (["ask", "--json", BRAINLM], BRAINLM),
        (["--collection", "default", "--json", BRAINLM], BRAINLM),
        (["--collection=default", BRAINLM, "--json"], BRAINLM),
        (["--json", "status"], "status"),
        (["--json", "--", "--what is it--"], "--what is it--"),
    ],
    ids=lambda x: " ".join(x)[:40] if isinstance(x, list) else "",
)
def test_what_names_no_command_is_a_question(run: Main, args: list[str], question: str) -> None:
    code, out, _ = run(*args)
    assert code == 0
    assert json.loads(out)["question"] == question


@pytest.mark.parametrize("args", [["status"], ["--collection", "default", "status"], ["--collection=default", "status"]], ids=" ".join)
def test_a_lone_word_that_names_a_command_is_that_command(run: Main, args: list[str]) -> None:
    assert run(*args)[1].startswith("collection: default\npapers: 95\n")


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        ([""], 2, "The question is empty."),
        (["\x01\x02\x1b"], 2, "The question is empty."),
        (["x" * 20_000], 2, "20,000 characters"),
        (["--no-such-option"], 2, "No such option"),
        (["--mode", "magic", "q"], 2, "magic"),
        (["--sources", "0", "q"], 2, "0 is not in the range"),
        (["--year", "99", "q"], 2, "99 is not in the range"),
        (["--json"], 2, "There is no question."),
        (["--json", "--bibtex", "q"], 2, "both JSON and BibTeX"),
        (["search"], 2, "There is no query."),
        (["search", "-k", "0", "q"], 2, "0 is not in the range"),
        (["search", ""], 2, "The question is empty."),
        (["--file", "missing.txt"], 1, "missing.txt cannot be read: No such file or directory."),
        (["--file", "."], 1, ". cannot be read: Is a directory."),
        (["--file", "binary"], 1, "binary is not text in UTF-8."),
        (["--file", "empty.txt"], 1, "empty.txt holds no question."),
        (["--file", "good.txt", "q"], 2, "both a question and a file"),
        (["search", "--file", "missing.txt"], 1, "missing.txt cannot be read"),
        (["--session", "../x", "q"], 2, "'../x' is no name"),
        (["--session", "", "q"], 2, "'' is no name"),
        (["--session", "x" * 65, "q"], 2, "is no name"),
        (["--session", "a/b", "q"], 2, "'a/b' is no name"),
        (["--session", "é", "q"], 2, "'é' is no name"),
        (["chat", "--session", "../x"], 2, "'../x' is no name"),
        (["sessions", "--delete", "nobody"], 2, "no conversation 'nobody'"),
        (["sessions", "--delete", ""], 2, "'' is no name"),
        (["show", "zzzz"], 2, "No paper is called 'zzzz'."),
        (["show", "0"], 2, "No paper is called '0'."),
        (["--collection", "../x", "q"], 2, "ASK_COLLECTION"),
        (["--collection", "nothing-here", "q"], 2, "holds no papers"),
        (["--mode", "llm", "q"], 1, "OPENAI_API_KEY"),
    ],
    ids=lambda x: " ".join(x)[:30] if isinstance(x, list) else "",
)
def test_bad_input_gives_its_exit_code_a_message_and_nothing_on_standard_output(run: Main, args: list[str], code: int, says: str, tmp_path: Path) -> None:
    here = tmp_path / "cwd"
    (here / "binary").write_bytes(bytes(range(256)) * 8)
    (here / "empty.txt").write_text("\n \n", encoding="utf-8")
    (here / "good.txt").write_text("What is BiLLM?\n", encoding="utf-8")
    ended, out, err = run(*args)
    assert (ended, out) == (code, "")
    assert says in err
    assert "Traceback" not in err


def test_an_unexpected_exception_is_told_in_words_and_shown_whole_with_debug(run: Main, monkeypatch: pytest.MonkeyPatch, ask: AskRun, tmp_path: Path) -> None:
    def broken(self: object) -> None:
        raise ZeroDivisionError("a fault of ours")

    monkeypatch.setattr("rag.assistant.Assistant.status", broken)
    code, out, err = run("status")
    assert (code, out) == (1, "")
    assert err.startswith("Error: Something unexpected went wrong (ZeroDivisionError).\n")
    assert "--debug" in err
    assert "Traceback" not in err
    done = ask("--debug", "show", "zzzz")
    assert done.returncode == 2
    assert "Traceback" in done.stderr
    assert "Error: No paper is called 'zzzz'." in done.stderr


# Answers ---------------------------------------------------------------------------------------------------------------


def test_questions_of_a_stream_are_answered_one_by_one_and_one_that_fails_stops_no_other(seeded_home: Path, tmp_path: Path) -> None:
    """Each answer comes before the next question is sent, so that a program can talk to the command."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([str(ASK), "--json", "--file", "-"], text=True, env=environment(seeded_home), cwd=tmp_path, **pipes) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        answers = []
        for question in (BRAINLM, "x" * 20_000, "Welche Größe hat BiLLM? 数\x85\u2028"):
            process.stdin.write(f"\n  \n{question}\n")
            process.stdin.flush()
            assert select.select([process.stdout], [], [], 60)[0], "no answer before the next question"
            answers.append(json.loads(process.stdout.readline()))
        process.stdin.close()
        rest, err = process.stdout.read(), process.stderr.read()
    assert process.returncode == 1
    assert rest == ""
    assert "6,700" in answers[0]["answer"]
    assert answers[1].keys() == {"question", "error"}
    assert answers[1]["question"] == "x" * 20_000
    assert "20,000 characters" in answers[1]["error"]
    assert answers[2]["question"].startswith("Welche Größe hat BiLLM? 数")
    assert err.count("Error:") == 1


def test_a_file_of_questions_and_one_of_queries(run: Main, tmp_path: Path) -> None:
    file = tmp_path / "questions.txt"
    file.write_text("\ufeffWhat bit-width does BiLLM reach?\r\n\r\nWhat is the capital of France?\r\n", encoding="utf-8")
    code, out, _ = run("--json", "--file", str(file))
    assert code == 0
    assert [json.loads(line)["outcome"] for line in out.splitlines()] == ["answered", "no_paper"]
    code, out, _ = run("search", "--json", "-k", "2", "--file", str(file))
    assert [len(json.loads(line)["results"]) for line in out.splitlines()] == [2, 2]
    code, out, _ = run("search", "-k", "3", "flow", "matching", "for", "proteins")
    assert [line[:6] for line in out.splitlines()] == ["  1. A", "  2. " + out.splitlines()[1][5], "  3. " + out.splitlines()[2][5]]
    assert "AlphaFold Meets Flow Matching" in out.splitlines()[0]


def test_a_conversation_goes_on_in_the_next_run_and_two_do_not_mix(ask: AskRun, run: Main, own_home: Path) -> None:
    ask("--session", "a", "What is Dynamic Memory Compression?", home=own_home)
    run("--session", "b", "What bit-width does BiLLM reach?", home=own_home)
    told = ask("--session", "a", "--json", "How much faster does it make generation?", home=own_home)
    assert "Dynamic Memory Compression" in json.loads(told.stdout)["standalone_question"]
    assert "3.7" in json.loads(told.stdout)["answer"]
    _, out, _ = run("--session", "b", "--json", "Is it fast?", home=own_home)
    assert "BiLLM" in json.loads(out)["standalone_question"]
    assert run("sessions", home=own_home)[1].splitlines() == [
        "a: 2 questions, last “How much faster does it make generation?”",
        "b: 2 questions, last “Is it fast?”",
    ]
    assert run("sessions", "--delete", "a", home=own_home)[:2] == (0, "")
    assert run("sessions", home=own_home)[1].startswith("b:")
    (own_home / "sessions" / "b.json").write_text("{", encoding="utf-8")
    for args in (["--session", "b", "What is BiLLM?"], ["sessions"]):
        code, out, err = run(*args, home=own_home)
        assert (code, out) == (1, "")
        assert "damaged" in err
        assert "ask sessions --delete b" in err


def test_chat_answers_from_standard_input_understands_a_follow_up_and_ends_at_an_empty_line(ask: AskRun, own_home: Path) -> None:
    done = ask("chat", "--session", "c", home=own_home, stdin=f"{BRAINLM}\n{'x' * 20_000}\nHow many recordings did it use?\n\nWhat is BiLLM?\n")
    assert done.returncode == 0
    assert done.stdout.startswith("We introduce the Brain Language Model (BrainLM)")
    assert "Understood as: How many recordings did BrainLM use?" in done.stdout
    assert "BiLLM" not in done.stdout
    assert "20,000 characters" in done.stderr
    assert len(json.loads((own_home / "sessions" / "c.json").read_text(encoding="utf-8"))) == 2


def test_a_paper_is_shown_by_id_by_its_start_and_by_place(run: Main) -> None:
    found = json.loads(run("search", "--json", "-k", "1", "BrainLM")[1])["results"][0]["paper_id"]
    whole = run("show", found)[1]
    assert whole.startswith("BrainLM: A foundation model for brain activity recordings\n")
    assert whole.rstrip().endswith(".")
    file, position = re.search(r"· (\S+\.txt) (\d+)\n", whole).groups()  # type: ignore[union-attr]
    assert run("show", found[:6])[1] == run("show", f"{file} {position}")[1] == whole


def test_a_name_that_several_papers_share_is_refused(run: Main, own_home: Path, tmp_path: Path) -> None:
    lines = [{"id": "twin", "title": f"T{n}", "text": f"Abstract number {n} is about wool and its many uses in the households of old."} for n in (1, 2)]
    file = tmp_path / "twins.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    assert run("--collection", "twins", "ingest", str(file), home=own_home)[0] == 0
    code, out, err = run("--collection", "twins", "show", "twin", home=own_home)
    assert (code, out) == (2, "")
    assert "More than one paper is called 'twin'." in err


def test_bibtex_alone_is_on_standard_output(run: Main) -> None:
    code, out, err = run("--bibtex", "Which papers compress the KV cache?")
    assert code == 0
    assert BIBTEX.fullmatch(out)
    assert out.count("@") == 3
    assert "about this" in err


def test_status_of_a_fresh_home_says_that_nothing_is_there_and_makes_nothing(ask: AskRun, tmp_path: Path) -> None:
    home = tmp_path / "fresh"
    done = ask("status", home=home)
    assert done.returncode == 0
    assert "papers: 0\n" in done.stdout
    assert json.loads(ask("status", "--json", home=home).stdout)["papers"] == 0
    assert not home.exists()


def test_hostile_papers_print_harmlessly(run: Main, own_home: Path, tmp_path: Path) -> None:
    evil = "\x1b[31m\x1b]8;;http://evil.example\x07zebra\x1b]8;;\x07\r\x9b2J\u202e[bold]stripes[/bold] [link=http://evil.example]repel[/link]"
    paper = {"id": evil, "title": evil, "authors": [evil], "venue": evil, "year": 2020, "url": f"https://x/{evil}"}
    file = tmp_path / "evil\x1b]0;x\x07.jsonl"
    file.write_text(
        json.dumps(paper | {"text": f"We measure how {evil} horseflies land on coats. Flies landed 74% less often on {evil}."}) + "\n", encoding="utf-8"
    )
    in_evil = ("--collection", "evil")
    assert run(*in_evil, "ingest", str(file), home=own_home)[0] == 0
    active = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
    for args in (["How do zebra stripes repel horseflies?"], ["search", "zebra"], ["status"], ["--bibtex", "Do flies land on zebra stripes?"]):
        code, out, err = run(*in_evil, *args, home=own_home)
        assert code == 0
        assert "zebra" in out or args == ["status"]
        assert not active.findall(out + err), args
    out = run(*in_evil, "--json", "How do zebra stripes repel horseflies?", home=own_home)[1]
    assert not active.findall(out)
    assert "\u202e" in json.loads(out)["sources"][0]["text"]
    name = json.loads(run(*in_evil, "search", "--json", "zebra", home=own_home)[1])["results"][0]["paper_id"]
    code, shown = on_terminal(*in_evil, "show", name, home=own_home)
    assert code == 0
    assert "[bold]stripes[/bold]" in shown
    assert not re.search("\x1b\\]|\x9b|\u202e|\x1b\\[31m", shown)


def test_an_empty_path_ingests_the_current_folder(ask: AskRun, tmp_path: Path) -> None:
    (tmp_path / "here.jsonl").write_text('{"abstract": "A paper that nobody asked to ingest, of some length."}\n', encoding="utf-8")
    done = ask("ingest", "", home=tmp_path / "fresh")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "fresh").exists()


def test_a_restriction_in_the_words_is_not_shown_or_cannot_be_switched_off(ask: AskRun) -> None:
    question = "Which ICML papers deal with diffusion?"
    told = json.loads(ask("--json", question).stdout)
    assert told["filters"] == {"venue": "ICML"}
    assert {s["venue"] for s in told["sources"]} == {"ICML"}
    whole = json.loads(ask("--json", "--whole", question).stdout)
    assert whole["filters"] == {}
