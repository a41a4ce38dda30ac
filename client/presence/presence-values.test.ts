import fc from "fast-check";
import { expect, test } from "vitest";
import * as Y from "yjs";

import { encodePoint, encodeRectangle, encodeSpan } from "../../shared/wire/positions.ts";
import { CURSOR, SELECTION, VIEWPORT } from "../../shared/wire/presence.ts";
import { decodeValue, encodeValue, fieldsOf } from "./presence-fields.ts";

test("[VAL1] every JSON value is decoded as it was encoded", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => void expect(decodeValue(encodeValue(value))).toEqual(JSON.parse(JSON.stringify(value)))),
  );
});

test.each([[undefined], [() => 1], [Symbol("s")]])("[VAL1] a value that JSON omits removes the field: %s", (value) => {
  expect(encodeValue(value)).toHaveLength(0);
});

test("[VAL2] an encoded caret is a tenth of its JSON and decodes to the same place, as a selection does", () => {
  const doc = new Y.Doc();
  const text = doc.getText("text");
  text.insert(0, "hello world");
  for (const [anchor, head, bytesMax] of [
    [3, 3, 14],
    [2, 7, 24],
    [11, 11, 14],
    [7, 2, 24],
  ] as const) {
    const places = { anchor: Y.createRelativePositionFromTypeIndex(text, anchor), head: Y.createRelativePositionFromTypeIndex(text, head) };
    const bytes = encodeValue(places);
    expect(bytes.byteLength).toBeLessThanOrEqual(bytesMax);
    const seen = decodeValue(bytes) as typeof places;
    expect([seen.anchor, seen.head].map((place) => Y.createAbsolutePositionFromRelativePosition(place, doc)?.index)).toEqual([
      anchor,
      head,
    ]);
    expect(
      [seen.anchor, seen.head].map(
        (place) => Y.createAbsolutePositionFromRelativePosition(Y.createRelativePositionFromJSON(place), doc)?.index,
      ),
    ).toEqual([anchor, head]);
  }
});

test("[VAL2] a place in a nested text, and one bound to the letter before it, are decoded unchanged", () => {
  const doc = new Y.Doc();
  const text = doc.getMap<Y.Text>("texts").set("a", new Y.Text());
  for (const assoc of [0, -1]) {
    const place = Y.createRelativePositionFromTypeIndex(text, 0, assoc);
    const seen = decodeValue(encodeValue({ anchor: place, head: place })) as { head: Y.RelativePosition };
    expect(Y.compareRelativePositions(Y.createRelativePositionFromJSON(seen.head), place)).toBe(true);
  }
});

test.each([
  [{ anchor: 1, head: 2 }],
  [{ anchor: {}, head: {} }],
  [{ anchor: { tname: "t", item: { client: 1.5, clock: 0 } }, head: { tname: "t" } }],
  [{ anchor: { tname: "t" }, head: { tname: "t" }, more: true }],
])("[VAL2] a value that only resembles a caret travels unchanged: %o", (value) => {
  expect(decodeValue(encodeValue(value))).toEqual(value);
});

test("[VAL3] bytes that encode no value are ignored", () => {
  fc.assert(fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => void decodeValue(Uint8Array.of(1, ...bytes))));
  for (const bytes of [[], [1], [1, 1, 9], [0x7b], [0xff, 0xff]]) expect(decodeValue(Uint8Array.from(bytes))).toBeUndefined();
});

test("[VAL4] positions are sent in whole units, a viewport rounded outwards, and null removes a field", () => {
  const viewport = { x: 0.5, y: -0.5, width: 10, height: 10.2 };
  expect(fieldsOf({ cursor: { x: 1.5, y: -1.4 }, selection: { anchor: 7, head: 2 }, viewport, tool: undefined })).toEqual([
    { name: CURSOR, value: encodePoint({ x: 2, y: -1 }) },
    { name: SELECTION, value: encodeSpan({ anchor: 7, head: 2 }) },
    { name: VIEWPORT, value: encodeRectangle({ x: 0, y: -1, width: 11, height: 11 }) },
  ]);
  expect(fieldsOf({ cursor: null, selection: null, viewport: null, tool: null })).toEqual(
    [CURSOR, SELECTION, VIEWPORT, "tool"].map((name) => ({ name, value: new Uint8Array() })),
  );
});

test.each([[null], [undefined], ["typing"], [[1]]])("[VAL4] presence that is no object of fields is refused: %j", (presence) => {
  expect(() => fieldsOf(presence as never)).toThrow("presence must be an object of fields");
});

test.each([
  [{ cursor: {} }, "cursor"],
  [{ cursor: "here" }, "cursor"],
  [{ selection: { anchor: -1, head: 0 } }, "selection"],
  [{ viewport: { x: 0, y: 0, width: -5, height: 1 } }, "viewport"],
])("[VAL5] the error of a position names its field: %j", (presence, field) => {
  expect(() => fieldsOf(presence as never)).toThrow(new RegExp(`^\`${field}\` .* 2\\^48`));
});
