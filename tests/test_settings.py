"""Settings: where each value comes from, what is refused, and that no secret is ever shown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from rag.errors import SettingsError
from rag.settings import Settings

EXAMPLE = Path(__file__).parent.parent / ".env.example"
KEY = "sk-very-secret-12345"


def write(file: Path, *lines: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(lines))


@pytest.fixture
def here() -> Path:
    """`.env` of the current folder."""
    return Path.cwd() / ".env"


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """`.env` of ASK_HOME."""
    return tmp_path / "home" / ".env"


def test_each_place_wins_over_the_ones_after_it(here: Path, there: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Settings.load().model == "gpt-5.4-mini"
    write(there, "ASK_MODEL=of-home")
    assert Settings.load().model == "of-home"
    write(here, "ASK_MODEL=of-folder")
    assert Settings.load().model == "of-folder"
    monkeypatch.setenv("ASK_MODEL", "of-environment")
    assert Settings.load().model == "of-environment"
    assert Settings.load(model="of-caller").model == "of-caller"
    assert Settings.load(model=None).model == "of-environment"


def test_an_empty_value_is_no_value(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASK_MODEL", "")
    write(here, "ASK_SOURCES=", "OPENAI_API_KEY=")
    settings = Settings.load()
    assert (settings.model, settings.sources, settings.effective_mode) == ("gpt-5.4-mini", 5, "extractive")


def test_the_home_may_be_named_in_the_folders_env_file(here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ASK_HOME")
    write(here, f"ASK_HOME={tmp_path / 'else where'}")
    write(tmp_path / "else where" / ".env", "ASK_MODEL=found")
    settings = Settings.load()
    assert (settings.home, settings.model) == (tmp_path / "else where", "found")


@pytest.mark.parametrize(
    ("given", "want"),
    [("~/with space/ask", "{home}/with space/ask"), ("relative", "{cwd}/relative"), ("/absolute", "/absolute")],
)
def test_a_home_means_the_same_wherever_the_program_goes(given: str, want: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASK_HOME", given)
    assert str(Settings.load().home) == want.format(home=Path.home(), cwd=Path.cwd())


@pytest.mark.parametrize("place", ["environment", "here", "there"])
@pytest.mark.parametrize(
    ("name", "says"),
    [("ASK_MODLE", "Did you mean ASK_MODE or ASK_MODEL?"), ("ask_sauces", "Did you mean ASK_SOURCES?"), ("ASK_QQQQQQ", "Known are ASK_AUTH,")],
)
def test_an_unknown_name_is_refused_wherever_it_stands(place: str, name: str, says: str, here: Path, there: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if place == "environment":
        monkeypatch.setenv(name, "x")
    else:
        write({"here": here, "there": there}[place], f"{name}=x")
    with pytest.raises(SettingsError, match=f"sets {name.upper()}, which is no setting") as refused:
        Settings.load()
    assert refused.value.message.startswith("The environment" if place == "environment" else str({"here": here, "there": there}[place]))
    assert refused.value.hint.startswith(says)


def test_other_peoples_keys_are_ignored(here: Path, there: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file in (here, there):
        write(file, "DATABASE_URL=x", "OPENAI_ORGANIZATION=y", "MODEL=z", "HOME=/nowhere", "export TASK_MODEL=w")
    monkeypatch.setenv("MODEL", "z")
    assert Settings.load().model == "gpt-5.4-mini"


def test_a_misspelt_override_is_refused_like_a_misspelt_name() -> None:
    with pytest.raises(SettingsError) as refused:
        Settings.load(colection="x")
    assert str(refused.value) == "The call sets colection, which is no setting. Did you mean collection?"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ASK_SOURCES", "0"),
        ("ASK_SOURCES", "51"),
        ("ASK_SOURCES", "five"),
        ("ASK_SOURCES", "2.5"),
        ("ASK_TOP_K", "0"),
        ("ASK_TOP_K", "51"),
        ("ASK_TIMEOUT_CONNECT_S", "0"),
        ("ASK_TIMEOUT_FIRST_S", "3601"),
        ("ASK_TIMEOUT_NEXT_S", "-1"),
        ("ASK_TIMEOUT_S", "0.05"),
        ("ASK_TIMEOUT_S", "3601"),
        ("ASK_TIMEOUT_S", "nan"),
        ("ASK_TIMEOUT_S", "inf"),
        ("ASK_RETRIES", "-1"),
        ("ASK_RETRIES", "11"),
        ("ASK_MAX_TOKENS", "15"),
        ("ASK_MAX_TOKENS", "100001"),
        ("ASK_MODE", "fast"),
        ("ASK_CONTEXT_WINDOW", "511"),
        ("ASK_REASONING_EFFORT", "extreme"),
        ("ASK_EXTRA_HEADERS", "X-Team: papers"),
        ("ASK_EXTRA_HEADERS", '["X-Team"]'),
        ("ASK_EXTRA_HEADERS", '{"X-Team": 7}'),
        ("ASK_EXTRA_HEADERS", '{"X Team": "papers"}'),
        ("ASK_EXTRA_HEADERS", '{"X-Team": "two\\nlines"}'),
        ("ASK_MODEL", "m" * 201),
        ("ASK_COLLECTION", "../up"),
        ("ASK_COLLECTION", ".hidden"),
        ("ASK_COLLECTION", "a/b"),
        ("ASK_COLLECTION", "a b"),
        ("ASK_COLLECTION", "é"),
        ("ASK_COLLECTION", "c" * 65),
        ("ASK_HOME", "~no-such-user-here/x"),
        ("OPENAI_BASE_URL", "localhost:8080"),
        ("OPENAI_BASE_URL", "ftp://host"),
        ("OPENAI_BASE_URL", "http://"),
        ("OPENAI_BASE_URL", "http://host:99999"),
        ("OPENAI_BASE_URL", "http://[::1"),
        ("OPENAI_BASE_URL", "http://my host/v1"),
    ],
)
def test_a_value_out_of_bounds_is_refused_by_name(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=rf"A setting is wrong: {name}: \S") as refused:
        Settings.load()
    assert refused.value.exit_code == 2
    assert "Value error" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("SOURCES", "1", "50"),
        ("TOP_K", "1", "50"),
        ("TIMEOUT_S", "0.1", "3600"),
        ("TIMEOUT_CONNECT_S", "0.1", "3600"),
        ("RETRIES", "0", "10"),
        ("MAX_TOKENS", "16", "100000"),
    ],
)
def test_the_bounds_themselves_are_allowed(name: str, low: str, high: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for value in (low, high):
        monkeypatch.setenv(f"ASK_{name}", value)
        assert getattr(Settings.load(), name.lower()) == float(value)


# Mode and server -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "mode", "host"),
    [
        ({}, "extractive", "api.openai.com"),
        ({"OPENAI_API_KEY": KEY}, "llm", "api.openai.com"),
        ({"OPENAI_BASE_URL": "http://localhost:11434/v1/"}, "llm", "localhost:11434"),
        ({"OPENAI_API_KEY": KEY, "ASK_MODE": "extractive"}, "extractive", "api.openai.com"),
        ({"ASK_MODE": "llm"}, "llm", "api.openai.com"),
        ({"OPENAI_BASE_URL": "https://user:pass@host/v1"}, "llm", "host"),
    ],
)
def test_a_language_model_is_asked_only_where_one_is_configured(given: dict[str, str], mode: str, host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    settings = Settings.load()
    assert (settings.effective_mode, settings.llm_host) == (mode, host)


# Secrets ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [f"{KEY}\n", f"  {KEY}\r\n", KEY])
def test_a_key_loses_the_line_break_it_was_read_with(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", given)
    key = Settings.load().openai_api_key
    assert key is not None
    assert key.get_secret_value() == KEY


def test_a_blank_key_is_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", " \n")
    assert Settings.load().effective_mode == "extractive"


def test_no_secret_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", f"https://user:{KEY}@host/v1")
    settings = Settings.load()
    for shown in (repr(settings), str(settings), str(settings.openai_api_key), f"{settings.model_fields_set}", settings.llm_host):
        assert KEY not in shown
    assert KEY not in settings.model_dump_json(exclude={"openai_base_url"})


@pytest.mark.parametrize("name", ["ASK_SOURCES", "ASK_MODE", "ASK_COLLECTION", "ASK_HOME", "OPENAI_BASE_URL"])
def test_a_key_pasted_into_the_wrong_place_is_not_repeated(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, f"~{KEY}/{KEY}")
    with pytest.raises(SettingsError) as refused:
        Settings.load()
    told = f"{refused.value!r} {refused.value} {refused.value.__cause__}"
    assert KEY not in told


def test_settings_cannot_be_changed_behind_anyones_back() -> None:
    with pytest.raises(ValidationError):
        Settings.load().model = "other"  # type: ignore[misc]


# The files -------------------------------------------------------------------------------------------------------------


def test_an_env_file_of_a_windows_editor_is_read(here: Path) -> None:
    here.write_bytes("\ufeffASK_MODEL=first\r\nASK_SOURCES=7\r\n".encode())
    settings = Settings.load()
    assert (settings.model, settings.sources) == ("first", 7)


def test_an_env_file_that_is_no_text_is_told(here: Path) -> None:
    here.write_bytes(b"ASK_MODEL=\xff\xfe")
    with pytest.raises(SettingsError, match=r"\.env cannot be read: it is not UTF-8 text"):
        Settings.load()


def test_a_folder_called_env_is_a_virtual_environment_and_none_of_our_business(here: Path) -> None:
    here.mkdir()
    assert Settings.load().model == "gpt-5.4-mini"


def test_the_example_file_lists_every_setting_with_its_default() -> None:
    listed = dict(re.findall(r"^# ?([A-Z][A-Z_]+)=(.*)$", EXAMPLE.read_text(), re.MULTILINE))
    fields = Settings.model_fields
    assert sorted(listed) == sorted(Settings.env_names().values())
    for field, name in Settings.env_names().items():
        default = fields[field].default
        assert listed[name] == ("" if default is None or field == "home" else f"{default:g}" if isinstance(default, float | bool) else str(default))


def test_the_example_file_can_be_used_as_it_is_and_uncommented(here: Path) -> None:
    plain = Settings.load()
    for content in (EXAMPLE.read_text(), re.sub(r"^# ?([A-Z][A-Z_]+=)", r"\1", EXAMPLE.read_text(), flags=re.MULTILINE)):
        here.write_text(content)
        assert Settings.load() == plain


def test_the_example_file_tells_the_bounds_that_hold() -> None:
    told = {name: bounds for bounds, name in re.findall(r"\(([\d.]+ to \d+)\)\.\n# ?(\w+)=", EXAMPLE.read_text())}
    held = {}
    for field, name in Settings.env_names().items():
        limits = {side: getattr(m, side) for m in Settings.model_fields[field].metadata for side in ("ge", "le") if hasattr(m, side)}
        if limits:
            held[name] = f"{limits['ge']} to {limits['le']}"
    assert told == held
