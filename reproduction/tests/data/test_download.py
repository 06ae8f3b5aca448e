"""Downloads from a server that cuts, lies and forgets."""

import dataclasses
import os

import pytest
from reproduction.tests.data import make
from reproduction.tests.data.server import Behavior, serve

from isotherm_thesis.data import DataSet, File, get, load
from isotherm_thesis.data.tables import Table, Text

TEXT = b"".join(b"%d %d\n" % (row, 3 * row) for row in range(1, 20_001))
READER = Text(Table(20_000, (10_000.5, 30_001.5)))


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")


@pytest.fixture
def dataset(tmp_path):
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "table.data").write_bytes(TEXT)
    file = make.summed(File("table.data", READER, url="http://localhost/table.data"), tmp_path / "source", "sha256")
    return DataSet("tiny", "Tiny", "none", ((file,),))


def unsummed(dataset):
    return dataclasses.replace(dataset, layouts=((dataclasses.replace(dataset.files[0], sha256=""),),))


def test_a_download_is_checked_and_not_repeated(dataset, tmp_path):
    behavior, lines, seen, paths = Behavior({"table.data": TEXT}), [], [], ()
    with serve(behavior) as url:
        for _ in range(2):
            paths = get(
                dataset, tmp_path / "data", urls=url, log=lines.append, progress=lambda *given: seen.append(given)
            )
    assert paths == (tmp_path / "data" / "table.data",)
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["table.data"]
    assert behavior.seen == [("/table.data", None)]
    assert [line.split("table.data ")[1] for line in lines] == [
        "is downloaded and right.",
        "is there already and right.",
    ]
    assert seen[0] == ("table.data", 0, len(TEXT))
    assert seen[-1] == ("table.data", len(TEXT), len(TEXT))
    assert load(dataset, tmp_path / "data")["targets"][-1] == 60_000


@pytest.mark.parametrize("has_checksum", [True, False])
def test_a_cut_download_goes_on_where_it_stopped(dataset, tmp_path, has_checksum):
    dataset = dataset if has_checksum else unsummed(dataset)
    behavior, lines = Behavior({"table.data": TEXT}, cut_after=1000), []
    part = tmp_path / "table.data.part"
    with serve(behavior) as url:
        message = rf"`the connection to {url}/table.data` must be open until the end; got .* after 1,000 bytes. Run "
        with pytest.raises(ValueError, match=rf"{message}`isotherm data get tiny --dir .*` again: it goes on where"):
            get(dataset, tmp_path, urls=url)
        assert part.read_bytes() == TEXT[:1000]
        behavior.cut_after = 500
        with pytest.raises(ValueError, match="after 1,500 bytes"):
            get(dataset, tmp_path, urls=url)
        behavior.cut_after = None
        get(dataset, tmp_path, urls=url, log=lines.append)
    assert behavior.ranges == [None, "bytes=1000-", "bytes=1500-"]
    assert (tmp_path / "table.data").read_bytes() == TEXT
    assert not part.exists()
    assert "1,500 bytes were there before" in lines[0]


def test_a_whole_part_is_only_checked(dataset, tmp_path):
    (tmp_path / "table.data.part").write_bytes(TEXT)
    behavior = Behavior({"table.data": TEXT})
    with serve(behavior) as url:
        get(dataset, tmp_path, urls=url)
    assert behavior.ranges == [f"bytes={len(TEXT)}-"]
    assert (tmp_path / "table.data").read_bytes() == TEXT


@pytest.mark.parametrize(
    ("options", "part", "ranges"),
    [
        ({"knows_ranges": False}, TEXT[:700], ["bytes=700-"]),
        ({"content_range": "bytes 0-9/10"}, TEXT[:700], ["bytes=700-", None]),
        ({"content_range": f"bytes 700-800/{len(TEXT)}"}, TEXT[:700], ["bytes=700-", None]),
        ({"content_range": "nonsense"}, TEXT[:700], ["bytes=700-", None]),
        ({}, TEXT + b"more", [f"bytes={len(TEXT) + 4}-", None]),
        ({"tells_length": False}, TEXT[:700], ["bytes=700-"]),
    ],
)
def test_a_part_that_cannot_be_continued_is_begun_anew(dataset, tmp_path, options, part, ranges):
    (tmp_path / "table.data.part").write_bytes(part)
    behavior = Behavior({"table.data": TEXT}, **options)
    with serve(behavior) as url:
        get(dataset, tmp_path, urls=url)
    assert behavior.ranges == ranges
    assert (tmp_path / "table.data").read_bytes() == TEXT


@pytest.mark.parametrize("has_checksum", [True, False])
def test_wrong_content_never_gets_the_name(dataset, tmp_path, has_checksum):
    dataset = dataset if has_checksum else unsummed(dataset)
    wrong = TEXT.replace(b"7 21\n", b"7 999999999\n", 1)
    behavior = Behavior({"table.data": wrong})
    expected = f"sha256 {dataset.files[0].sha256}; got sha256" if has_checksum else "20,000 rows of .*; got a mean of"
    with serve(behavior) as url:
        for number in ("", "1"):
            kept = rf"kept as .*table.data.damaged{number}\. Run the command again, or name a mirror"
            with pytest.raises(ValueError, match=rf"`the download of {url}/table.data` must be .* {expected} .*{kept}"):
                get(dataset, tmp_path / "data", urls=url)
        assert sorted(path.name for path in (tmp_path / "data").iterdir()) == [
            "table.data.damaged",
            "table.data.damaged1",
        ]
        behavior.files["table.data"] = TEXT
        get(dataset, tmp_path / "data", urls=url)
    assert (tmp_path / "data" / "table.data").read_bytes() == TEXT
    assert (tmp_path / "data" / "table.data.damaged").read_bytes() == wrong


def test_a_damaged_file_is_set_aside_and_replaced(dataset, tmp_path):
    (tmp_path / "table.data").write_bytes(TEXT[:-1])
    lines = []
    with serve(Behavior({"table.data": TEXT})) as url:
        get(dataset, tmp_path, urls={"table.data": f"{url}/table.data"}, log=lines.append)
    assert "The damaged one that was there is now" in lines[0]
    assert (tmp_path / "table.data").read_bytes() == TEXT
    assert (tmp_path / "table.data.damaged").read_bytes() == TEXT[:-1]


def test_other_answers_are_refused(dataset, tmp_path):
    with serve(Behavior({})) as url:
        with pytest.raises(
            ValueError, match=r"must be the file; got status 404 \(Not Found\). Try again later, or name a mirror"
        ):
            get(dataset, tmp_path / "data", urls=url)
        assert list((tmp_path / "data").iterdir()) == []
    with pytest.raises(ValueError, match="must be open until the end; got URLError"):
        get(dataset, tmp_path / "data", urls=url)
    for location in ("file:///etc/passwd", "ftp://127.0.0.1/table.data"):
        behavior = Behavior({}, status=302, location=location)
        with (
            serve(behavior) as url,
            pytest.raises(ValueError, match=r"got (status 302|URLError: <urlopen error unknown url)"),
        ):
            get(dataset, tmp_path / "data", urls=url)


@pytest.mark.parametrize("url", ["file:///etc", "ftp://host/x", "data", "http://"])
def test_only_web_addresses_are_followed(dataset, tmp_path, url):
    with pytest.raises(ValueError, match="`url` must be an address that starts with http:// or https://; got '"):
        get(dataset, tmp_path, urls={"table.data": url} if url == "http://" else url)


def test_files_of_a_folder_go_there(tmp_path):
    file = File("inner/table.data", READER, url="http://localhost/table.data")
    with serve(Behavior({"table.data": TEXT})) as url:
        (path,) = get(DataSet("tiny", "Tiny", "none", ((file,),)), tmp_path, urls=url + "/")
    assert path == tmp_path / "inner" / "table.data"


def test_a_folder_that_cannot_be_made_is_refused(dataset, tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ValueError, match=r"`folder` must be one that can be written to; got .*Choose another --dir"):
        get(dataset, tmp_path / "file", urls="http://127.0.0.1:9")
    if os.geteuid():
        (tmp_path / "closed").mkdir(mode=0o500)
        with pytest.raises(ValueError, match="no right to write"):
            get(dataset, tmp_path / "closed", urls="http://127.0.0.1:9")


def test_a_missing_package_is_named_before_the_download(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ValueError, match="Run: pip install openpyxl"):
        get("energy", tmp_path, urls="http://127.0.0.1:9")


@pytest.mark.parametrize("size", [len(TEXT) - 1, len(TEXT) // 2])
@pytest.mark.parametrize("is_announced", [True, False])
def test_a_download_that_is_longer_than_the_file_ends(dataset, tmp_path, size, is_announced):
    short = dataclasses.replace(dataset.files[0], num_bytes=size)
    behavior = Behavior({"table.data": TEXT}, tells_length=is_announced)
    message = rf"`the download of .*` must be the file with sha256 .*; got .*{size:,} .*most\. What came is kept as"
    with serve(behavior) as url, pytest.raises(ValueError, match=message):
        get(dataclasses.replace(dataset, layouts=((short,),)), tmp_path, urls=url)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("table")] == ["table.data.damaged"]
