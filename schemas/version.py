"""The version of Rolecall, said in one place: packaging, envelopes and announcements read it here."""

VERSION = "0.1.0"
