"""A role of one's own: a licence header on top of every source file."""

import re

from rolecall import Contract, Files, Result, Role

MARKS = {"py": b"# ", "sh": b"# ", "js": b"// ", "ts": b"// ", "go": b"// ", "rs": b"// "}
# What must stay first: a byte order mark, a shebang, Python's coding line.
TOP = re.compile(rb"(?:\xef\xbb\xbf)?(?:#!.*\n)?(?:#.*coding[:=].*\n)?")


class LicenceHeaders(Role):
    """Adds the header; a file that has it stays, one with another copyright notice is named and left."""

    contract = Contract.load("licence.header.v1.json", beside=__file__)

    def handle(self, input: dict[str, str], files: Files) -> Result:
        result = Result()
        for path, data in files.items(*(f"**/*.{ending}" for ending in MARKS)):
            mark, end = MARKS[path.rpartition(".")[2]], b"\r\n" if b"\r\n" in data else b"\n"
            header = b"".join((mark + line.encode()).rstrip() + end for line in input["text"].splitlines())
            if b"copyright" in data[:2000].lower() and header not in data:
                result.leave(path, "has another copyright notice")
            elif header not in data and (top := TOP.match(data)):
                result.change(path, data[: top.end()] + header + data[top.end() :])
        return result
