"""Reading a JUnit XML report, which foreign code may have written: no entities, no links, no size without a limit.

The id of a test is pytest's own node id, which our plug-in adds as a property (`probe/rolecall_probe.py`);
without it, class name and name. A test that is reported twice (subtests, a failing teardown) has the worst of
its statuses.
"""

from xml.etree.ElementTree import Element, ParseError

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import fromstring

from schemas.errors import WorkspaceError
from tester.results import Case, Status

# 17,000 tests of Django report 3 MB without captured output.
MAX_REPORT_BYTES = 64 * 1024 * 1024
MAX_MESSAGE_CHARS = 400
NODE_ID_PROPERTY = "rolecall_nodeid"

_WORST_LAST = (Status.SKIPPED, Status.XFAILED, Status.PASSED, Status.FAILED, Status.ERROR)


def parse_junit(data: bytes) -> dict[str, Case]:
    """Every test in the report. Raises WorkspaceError if this is no JUnit report."""
    try:
        root: Element = fromstring(data, forbid_dtd=True)
    except (ParseError, DefusedXmlException, ValueError, LookupError) as error:
        raise WorkspaceError(f"The JUnit report cannot be read: {error}.") from error
    if root.tag not in ("testsuites", "testsuite"):
        raise WorkspaceError(f"The JUnit report starts with {root.tag[:40]!r} instead of 'testsuites'.")
    cases: dict[str, Case] = {}
    for element in root.iter("testcase"):
        name, case = _id_of(element), _case_of(element)
        known = cases.get(name)
        if known is None or _badness(case) > _badness(known):
            cases[name] = case
    return cases


def _id_of(element: Element) -> str:
    for found in element.iterfind("properties/property"):
        if found.get("name") == NODE_ID_PROPERTY:
            return found.get("value", "")
    name, owner = element.get("name", ""), element.get("classname", "")
    return f"{owner}::{name}" if owner else name


def _case_of(element: Element) -> Case:
    for tag, status in (("error", Status.ERROR), ("failure", Status.FAILED)):
        # The last failure of several is pytest's sum of them ("contains 1 failed subtest"): the first says more.
        found = element.find(tag)
        if found is not None:
            return Case(status, _message(found))
    skipped = element.find("skipped")
    if skipped is None:
        return Case(Status.PASSED)
    expected = skipped.get("type") == "pytest.xfail"
    return Case(Status.XFAILED if expected else Status.SKIPPED, _message(skipped))


def _message(element: Element) -> str:
    """The first words of why; for a collection error the last line of the traceback says it, not the message."""
    message = (element.get("message") or "").strip()
    if not message or message == "collection failure":
        lines = [line.strip() for line in (element.text or "").splitlines() if line.strip()]
        told = [line.removeprefix("E").strip() for line in lines if line.startswith("E ")]
        message = told[-1] if told else (lines[-1] if lines else message)
    return " ".join(message[: 4 * MAX_MESSAGE_CHARS].split())[:MAX_MESSAGE_CHARS]


def _badness(case: Case) -> int:
    return _WORST_LAST.index(case.status)
