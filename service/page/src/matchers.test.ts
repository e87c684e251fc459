import assert from "node:assert/strict";
import { test } from "node:test";
import { NO_MATCHERS, matchersText, previewPath } from "./matchers.ts";

test("a silence of everything has no preview, whatever its severity", () => {
  assert.equal(previewPath(NO_MATCHERS), null);
  assert.equal(previewPath({ ...NO_MATCHERS, severity: "urgent" }), null);
  assert.equal(previewPath({ ...NO_MATCHERS, host: "  " }), null);
});

test("the preview asks for what is named and for nothing else", () => {
  assert.equal(previewPath({ ...NO_MATCHERS, host: " stor-0* ", severity: "notice" }), "silences/preview?host=stor-0*&severity=notice");
  assert.equal(previewPath({ ...NO_MATCHERS, cause: "disks:host:a&b" }), "silences/preview?cause=disks%3Ahost%3Aa%26b");
});

test("a silence says what it covers", () => {
  assert.equal(matchersText({ cause: "", host: "stor-07", rack: "", model: "", name: "", severity: null }), "host stor-07");
  assert.equal(matchersText({ ...NO_MATCHERS, rack: "a*", severity: "notice" }), "rack a*, notice");
});
