"""Parsing of locations and their aliases."""

from __future__ import annotations

import re
from bisect import bisect_left

from .affine_parser import AffineParser
from .attributes import Attribute
from .location import UNKNOWN, CallSiteLoc, FileLoc, FusedLoc, Location, NameLoc
from .recursion import MAX_REGION_DEPTH
from .types import Type


class LocationParser(AffineParser):
    """The parser of locations, `loc(..)`."""

    def __init__(self, text: str, filename: str = "-") -> None:
        super().__init__(text, filename)
        self.location_aliases: dict[str, Location] = {}
        self._alias_places: dict[str, int] | None = None
        self._nesting = 0

    def attribute(self, type: Type | None = None) -> Attribute:
        """Any attribute: the metadata of a fused location is one."""
        raise NotImplementedError

    def location_attr(self) -> Location:
        """`loc(..)`."""
        self.expect("loc")
        self.expect("(")
        found = self._location()
        self.expect(")")
        return found

    def _location(self) -> Location:
        # Calls that were inlined nest locations deeper than anybody nests attributes: the limit is that of regions.
        self._nesting += 1
        if self._nesting > MAX_REGION_DEPTH:
            self.error(f"locations nested more than {MAX_REGION_DEPTH} deep")
        found = self._location_body()
        self._nesting -= 1
        return found

    def _location_body(self) -> Location:
        token = self.tokens[self.i]
        if token[:1] == "#":
            self.i += 1
            return self._location_alias(token[1:])
        if token[:1] == '"':
            name = self.string()
            if self.accept(":"):
                line = self.integer()
                self.expect(":")
                return FileLoc(name, line, self.integer())
            if self.accept("("):
                child = self._location()
                self.expect(")")
                return NameLoc(name, child)
            return NameLoc(name)
        if self.accept("unknown"):
            return UNKNOWN
        if self.accept("callsite"):
            self.expect("(")
            callee = self._location()
            self.expect("at")
            caller = self._location()
            self.expect(")")
            return CallSiteLoc(callee, caller)
        if self.accept("fused"):
            if self.accept("<"):
                self.attribute()
                self.expect(">")
            return FusedLoc(tuple(self.list("[", self._location, "]")))
        if self.at("loc"):
            return self.location_attr()
        self.unexpected("a location")

    def _location_alias(self, name: str) -> Location:
        """An alias of a location; MLIR puts their definitions at the end of a file, so look ahead for it."""
        found = self.location_aliases.get(name)
        if found is not None:
            return found
        if self._alias_places is None:
            places = re.finditer(r"^\s*#([\w$.-]+)\s*=\s*(?=loc)", self.text, re.M | re.A)
            self._alias_places = {m[1]: m.end() for m in places}
        place = self._alias_places.pop(name, None)
        if place is None:
            self.error(f"undefined location alias '#{name}'", self.i - 1)
        saved = self.i
        self.i = bisect_left(self.starts, place)
        found = self.location_aliases[name] = self.location_attr()
        self.i = saved
        return found
