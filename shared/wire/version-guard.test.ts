/** No change of the wire without a new version, because clients in use rely on it. */

import { createHash } from "node:crypto";
import { expect, test } from "vitest";

import { BOARD_ROLES, BOARD_STATES, BOARD_WINDOWS } from "./boards.ts";
import { CLOSE } from "./close-codes.ts";
import {
  BACKBONE_STATES,
  FrameType,
  JOIN_REFUSALS,
  LEFT_REASONS,
  NACK_REASONS,
  PROTOCOL_VERSION,
  RESYNC_REASONS,
  ROOM_MODES,
  SAVING_STATES,
} from "./frames.ts";
import vectors from "./vectors.json" with { type: "json" };

/** One entry per version, the newest last. The entry of a released version never changes. */
const WIRE_BY_VERSION: Readonly<Record<number, string>> = {
  1: "231ffc32be6cd56ef381929bc8dba840",
};

const ADVICE = `What the wire is made of has changed: frame types, names, close codes or vectors. Which is it?
  - Vectors for what clients do already, a new frame type, or a version not released yet:
    put the new hash into WIRE_BY_VERSION.
  - Anything that a released client would misread or refuse: raise PROTOCOL_VERSION in frames.ts, add a line to
    WIRE_BY_VERSION and to the version history in WIRE.md, and serve the version before for as long as it is in use.`;

test("the wire format changes only with its version", () => {
  expect(WIRE_BY_VERSION[PROTOCOL_VERSION], ADVICE).toBe(hashOfTheWire());
  expect(Math.max(...Object.keys(WIRE_BY_VERSION).map(Number)), "the newest line is this version's").toBe(PROTOCOL_VERSION);
});

function hashOfTheWire(): string {
  const closes = Object.fromEntries(Object.entries(CLOSE).map(([name, { code, reconnect }]) => [name, `${code} ${reconnect}`]));
  const names = [
    FrameType,
    JOIN_REFUSALS,
    LEFT_REASONS,
    NACK_REASONS,
    RESYNC_REASONS,
    ROOM_MODES,
    SAVING_STATES,
    BOARD_ROLES,
    BOARD_WINDOWS,
    BOARD_STATES,
    BACKBONE_STATES,
    closes,
  ];
  const frames = vectors.map(({ hex, frame }) => `${hex.replaceAll(" ", "")} ${JSON.stringify(sorted(frame))}`);
  return createHash("sha256")
    .update(JSON.stringify([names.map(sorted), frames.sort()]))
    .digest("hex")
    .slice(0, 32);
}

/** The order of declarations is not part of the wire. */
function sorted(value: unknown): unknown {
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map(sorted);
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, entry]) => [name, sorted(entry)]),
  );
}
