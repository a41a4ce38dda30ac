/** WIRE.md is the reference for people who do not read TypeScript, so it must match the code. */

import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

import { bytesOf } from "../../test/wire/vectors.ts";
import { BOARD_ROLES, BOARD_STATES, BOARD_WINDOWS } from "./boards.ts";
import { CLOSE, CLOSE_MEANINGS, type CloseName, reconnectAfterClose } from "./close-codes.ts";
import { decodeFrame } from "./codec.ts";
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

const WIRE = readFileSync(new URL("WIRE.md", import.meta.url), "utf8");

test("WIRE.md lists exactly the close codes of close-codes.ts", () => {
  const documented = [...WIRE.matchAll(/^\| (\d{4}) \| (\S+) \| (\S+) \| (.+) \|$/gm)].map(([, code, name, reconnect, meaning]) => ({
    code: Number(code),
    name,
    reconnect,
    meaning,
  }));
  expect(documented).toEqual(
    Object.entries(CLOSE).map(([name, close]) => ({ ...close, name, meaning: CLOSE_MEANINGS[name as CloseName] })),
  );
});

test("WIRE.md lists exactly the frame types of frames.ts", () => {
  const documented = [...WIRE.matchAll(/^\| 0x([0-9a-f]{2}) \| (\S+) \|/gm)].map(([, number, name]) => [
    name,
    Number.parseInt(number!, 16),
  ]);
  expect(Object.fromEntries(documented)).toEqual(FrameType);
});

/** Fields at the end of WELCOME, although the code keeps them elsewhere. */
const AT_THE_END: ReadonlySet<string> = new Set([
  "bytesBurst",
  "bytesPerSecond",
  "presenceBurst",
  "presencePerSecond",
  "presenceBytesMax",
  "presenceFieldsMax",
  "controlBurst",
  "controlsPerSecond",
  "partedFrameBytesMax",
]);

test("WIRE.md lists every field in the order of the bytes", () => {
  const kinds = /: (?:bytes|text|name|one byte)$/;
  for (const [, name, fields] of WIRE.matchAll(/^\| 0x[0-9a-f]{2} \| (\S+) \| (.+) \|$/gm)) {
    // WIRE.md describes the layouts of these frames in separate tables.
    if (name === "committed" || name === "board" || name === "presence" || name === "presence-delta") continue;
    const example = vectors.find(({ frame }) => frame?.type === name)!.frame as object;
    const leaves = leavesOf(example).filter((leaf) => leaf !== "type");
    expect(
      fields!.split(", ").map((field) => field.replace(kinds, "")),
      name,
    ).toEqual(name === "welcome" ? inOrder(leaves) : leaves);
  }
});

test("WIRE.md lists every name with its number", () => {
  const lists = {
    "join-refused reason": JOIN_REFUSALS,
    "left reason": LEFT_REASONS,
    "nack reason": NACK_REASONS,
    "resync-required reason": RESYNC_REASONS,
    "mode": ROOM_MODES,
    "board role": BOARD_ROLES,
    "board window": BOARD_WINDOWS,
    "board state": BOARD_STATES,
    "degraded backbone": BACKBONE_STATES,
    "saving state": SAVING_STATES,
  };
  for (const [field, names] of Object.entries(lists)) {
    const listed = Object.entries(names)
      .map(([name, number]) => `${number} ${name}`)
      .join(", ");
    expect(WIRE).toContain(`| ${field} | ${listed} |`);
  }
});

test("WIRE.md contains every rule that a vector cites, once, and its version history ends at this version", () => {
  const rules = [...WIRE.matchAll(/^- \*\*(WIRE\d+)\*\*/gm)].map(([, rule]) => rule);
  expect(new Set(rules).size).toBe(rules.length);
  expect(rules).toEqual(expect.arrayContaining(vectors.map(({ rule }) => rule)));
  expect([...WIRE.matchAll(/^\| (\d+) \| \d+\.\d+\.\d+ \|/gm)].at(-1)?.[1]).toBe(String(PROTOCOL_VERSION));
});

test("the sample session in WIRE.md consists of the frames that it names", () => {
  const lines = [...WIRE.matchAll(/^([CS]) {2}([0-9a-f ]+)\n {5}([A-Z-]+)/gm)];
  expect(lines.length).toBeGreaterThan(10);
  for (const [, from, hex, name] of lines) {
    const bytes = bytesOf(hex!);
    expect(decodeFrame(bytes)?.type, hex).toBe(name!.toLowerCase());
    expect(bytes[0]! < 0x80 ? "C" : "S", hex).toBe(from);
  }
});

test("[WIRE28] each close code determines the client's next step, and an unknown code counts as a broken connection", () => {
  for (const { code, reconnect } of Object.values(CLOSE)) expect(reconnectAfterClose(code)).toBe(reconnect);
  const others = [1000, 1001, 1005, 1006, 1008, 1009, 1012, 4999].map(reconnectAfterClose);
  expect(new Set(others)).toEqual(new Set(["after-backoff"]));
});

/** The names of a frame's fields in their order, with the fields of nested objects in place. */
function inOrder(leaves: readonly string[]): string[] {
  return [...leaves.filter((leaf) => !AT_THE_END.has(leaf)), ...leaves.filter((leaf) => AT_THE_END.has(leaf))];
}

function leavesOf(object: object): string[] {
  return Object.entries(object).flatMap(([name, value]: [string, unknown]) =>
    typeof value === "object" && value !== null && name !== "rights" && name !== "flags" ? leavesOf(value) : [name],
  );
}
