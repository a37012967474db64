"""Reading JUnit reports, good ones and what foreign code may put in their place."""

import os
from pathlib import Path

import pytest

from schemas.errors import WorkspaceError
from tester.junit import parse_junit
from tester.reports import read_report
from tester.results import Case, Status

REPORT = """<?xml version="1.0"?>
<testsuites><testsuite name="pytest" tests="7">
  <testcase classname="tests.test_a" name="test_ok" time="0.1">
    <properties><property name="rolecall_nodeid" value="tests/test_a.py::test_ok"/></properties></testcase>
  <testcase classname="tests.test_a.TestX" name="test_plain"/>
  <testcase classname="tests.test_a" name="test_red"><failure message="assert 0">long text</failure></testcase>
  <testcase classname="tests.test_a" name="test_xfail"><skipped type="pytest.xfail" message="known"/></testcase>
  <testcase classname="tests.test_a" name="test_skip"><skipped type="pytest.skip" message="no net">x</skipped></testcase>
  <testcase classname="tests.test_a" name="test_sub">
    <failure message="assert 1 == 2">i=1</failure><failure message="contains 1 failed subtest">-</failure></testcase>
  <testcase classname="" name="tests.test_b"><error message="collection failure">Traceback:
E   ModuleNotFoundError: No module named 'nope'</error></testcase>
</testsuite></testsuites>"""


def test_every_test_gets_its_own_verdict() -> None:
    cases = parse_junit(REPORT.encode())

    assert cases == {
        "tests/test_a.py::test_ok": Case(Status.PASSED),
        "tests.test_a.TestX::test_plain": Case(Status.PASSED),
        "tests.test_a::test_red": Case(Status.FAILED, "assert 0"),
        "tests.test_a::test_xfail": Case(Status.XFAILED, "known"),
        "tests.test_a::test_skip": Case(Status.SKIPPED, "no net"),
        "tests.test_a::test_sub": Case(Status.FAILED, "assert 1 == 2"),
        "tests.test_b": Case(Status.ERROR, "ModuleNotFoundError: No module named 'nope'"),
    }


@pytest.mark.parametrize("second", ["<failure message='boom'/>", "<error message='boom'/>"])
def test_a_test_that_is_reported_twice_is_red_if_one_report_is(second: str) -> None:
    report = f"<testsuite><testcase name='t'/><testcase name='t'>{second}</testcase><testcase name='t'/></testsuite>"

    cases = parse_junit(report.encode())

    assert cases["t"].status.is_red


@pytest.mark.parametrize(
    "junk",
    [
        b"",
        b"\0\0\0",
        b"<testsuites>",
        b"<html></html>",
        b"<?xml version='1.0' encoding='no-such-encoding'?><testsuites/>",
        b"<!DOCTYPE x [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;'>]><testsuites><testcase name='&b;'/></testsuites>",
        b"<!DOCTYPE x SYSTEM 'file:///etc/passwd'><testsuites/>",
        b"\xff\xfe\x00",
    ],
)
def test_what_is_no_report_is_refused(junk: bytes) -> None:
    with pytest.raises(WorkspaceError, match="JUnit report"):
        parse_junit(junk)


def test_a_report_without_tests_has_none() -> None:
    assert parse_junit(b"<testsuites><testsuite tests='0'/></testsuites>") == {}


def test_a_report_that_is_not_there_is_none(tmp_path: Path) -> None:
    assert read_report(tmp_path / "junit.xml", limit_bytes=10) is None


def test_a_link_in_place_of_a_report_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "junit.xml").symlink_to("secret")

    with pytest.raises(WorkspaceError, match=r"junit\.xml cannot be read"):
        read_report(tmp_path / "junit.xml", limit_bytes=100)


def test_a_pipe_in_place_of_a_report_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "junit.xml")

    with pytest.raises(WorkspaceError, match="not a plain file"):
        read_report(tmp_path / "junit.xml", limit_bytes=100)


def test_a_folder_in_place_of_a_report_is_refused(tmp_path: Path) -> None:
    (tmp_path / "junit.xml").mkdir()

    with pytest.raises(WorkspaceError, match="not a plain file"):
        read_report(tmp_path / "junit.xml", limit_bytes=100)


def test_a_report_over_the_limit_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "junit.xml").write_bytes(b"x" * 101)

    with pytest.raises(WorkspaceError, match="101 bytes"):
        read_report(tmp_path / "junit.xml", limit_bytes=100)
