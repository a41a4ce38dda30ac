/** Updates as a hostile writer could construct them: small, valid, and harmful to Yjs. */

import * as encoding from "lib0/encoding";
import * as Y from "yjs";

const [STRING, MAP_TYPE] = [4, 7];
const [HAS_ORIGIN, HAS_RIGHT_ORIGIN, HAS_KEY] = [128, 64, 32];
const [TEXT_CLIENT, INSERTS_CLIENT, NESTING_CLIENT] = [1, 2, 3];
const Y_MAP = 1;

/**
 * A text of `count` + 1 characters, and `count` inserts after its first character that end before different characters:
 * Yjs needs `count` squared steps.
 */
export function conflictBomb(count: number): Uint8Array {
  return encoding.encode((out) => {
    encoding.writeVarUint(out, 2);
    writeRun(out, INSERTS_CLIENT, 0, count);
    for (let index = 0; index < count; index++) writeInsert(out, 0, index + 1);
    writeText(out, count + 1);
    encoding.writeVarUint(out, 0);
  });
}

/** The same with a separate left origin for each insert. */
export function nestedConflictBomb(count: number): Uint8Array {
  return encoding.encode((out) => {
    encoding.writeVarUint(out, 2);
    writeRun(out, INSERTS_CLIENT, 0, count);
    for (let index = 0; index < count; index++) writeInsert(out, count - index, 3 * count - 1 - (count - index));
    writeText(out, 3 * count);
    encoding.writeVarUint(out, 0);
  });
}

function writeRun(out: encoding.Encoder, client: number, clock: number, structs: number): void {
  for (const value of [structs, client, clock]) encoding.writeVarUint(out, value);
}

function writeInsert(out: encoding.Encoder, left: number, right: number): void {
  encoding.writeUint8(out, STRING | HAS_ORIGIN | HAS_RIGHT_ORIGIN);
  for (const value of [TEXT_CLIENT, left, TEXT_CLIENT, right]) encoding.writeVarUint(out, value);
  encoding.writeVarString(out, "x");
}

function writeText(out: encoding.Encoder, length: number): void {
  writeRun(out, TEXT_CLIENT, 0, 1);
  encoding.writeUint8(out, STRING);
  encoding.writeVarUint(out, 1);
  encoding.writeVarString(out, "text");
  encoding.writeVarString(out, "a".repeat(length));
}

/** Maps within maps, from level `from` on, in the root map "root" under the key "a". The deletion of the first overflows the stack of Yjs. */
export function nestingBomb(levels: number, from = 0): Uint8Array {
  return encoding.encode((out) => {
    encoding.writeVarUint(out, 1);
    writeRun(out, NESTING_CLIENT, from, levels);
    for (let level = from; level < from + levels; level++) {
      encoding.writeUint8(out, MAP_TYPE | HAS_KEY);
      encoding.writeVarUint(out, level === 0 ? 1 : 0);
      if (level === 0) encoding.writeVarString(out, "root");
      else for (const value of [NESTING_CLIENT, level - 1]) encoding.writeVarUint(out, value);
      encoding.writeVarString(out, "a");
      encoding.writeVarUint(out, Y_MAP);
    }
    encoding.writeVarUint(out, 0);
  });
}

/** Deletes the first of these maps, with all its content. */
export const NESTING_FUSE = encoding.encode((out) => {
  for (const value of [0, 1, NESTING_CLIENT, 1, 0, 1]) encoding.writeVarUint(out, value);
});

/** A text, and `count` deletions of single characters from its end to its start. */
export function deletionBomb(count: number): Uint8Array {
  return encoding.encode((out) => {
    encoding.writeVarUint(out, 1);
    writeText(out, 2 * count);
    for (const value of [1, TEXT_CLIENT, count]) encoding.writeVarUint(out, value);
    for (let index = count - 1; index >= 0; index--) for (const value of [2 * index, 1]) encoding.writeVarUint(out, value);
  });
}

/** Arrays nested in each other, as a plain value. */
export function valueBomb(levels: number): Uint8Array {
  let value: unknown = 1;
  for (let level = 0; level < levels; level++) value = [value];
  const doc = new Y.Doc();
  doc.getMap("root").set("a", value);
  return Y.encodeStateAsUpdate(doc);
}

/**
 * A text in `pieces` pieces, and then updates of few inserts that each go through all pieces. Every update is within
 * the limits, and all of them together take as long as required.
 */
export function slowUpdates(pieces: number, count: number): Uint8Array[] {
  const text = encoding.encode((out) => {
    encoding.writeVarUint(out, 2);
    writeRun(out, INSERTS_CLIENT, 0, pieces);
    for (let index = 0; index < pieces; index++) writeInsert(out, index, index + 1);
    writeText(out, pieces + 1);
    encoding.writeVarUint(out, 0);
  });
  const inserts = Math.floor(PASSED_PIECES / (2 * pieces));
  return [
    text,
    ...Array.from({ length: count }, (_, update) =>
      encoding.encode((out) => {
        encoding.writeVarUint(out, 1);
        writeRun(out, INSERTS_CLIENT, pieces + update * inserts, inserts);
        for (let index = 0; index < inserts; index++) writeInsert(out, 0, pieces - 1 - ((update * inserts + index) % 100));
        encoding.writeVarUint(out, 0);
      }),
    ),
  ];
}

/** Updates that Yjs decodes, applies in part, and then stops at with an error. The part is the text "aaaa". */
export const HALF_UPDATES: readonly (readonly [name: string, update: Uint8Array])[] = [
  [
    "a deletion of nothing at a place that the document lacks",
    encoding.encode((out) => {
      encoding.writeVarUint(out, 1);
      writeText(out, 4);
      for (const value of [1, INSERTS_CLIENT, 1, 9, 0]) encoding.writeVarUint(out, value);
    }),
  ],
  [
    "a deletion at a clock beyond the whole numbers that a double counts",
    encoding.encode((out) => {
      encoding.writeVarUint(out, 1);
      writeText(out, 4);
      for (const value of [1, INSERTS_CLIENT, 1, 2 ** 53, 1]) encoding.writeVarUint(out, value);
    }),
  ],
  [
    "an item within a later item of its own writer",
    encoding.encode((out) => {
      encoding.writeVarUint(out, 2);
      writeText(out, 4);
      writeRun(out, INSERTS_CLIENT, 0, 1);
      encoding.writeUint8(out, STRING);
      for (const value of [0, INSERTS_CLIENT, 7]) encoding.writeVarUint(out, value);
      encoding.writeVarString(out, "x");
      encoding.writeVarUint(out, 0);
    }),
  ],
  [
    "an insert of nothing",
    encoding.encode((out) => {
      encoding.writeVarUint(out, 2);
      writeText(out, 4);
      writeRun(out, INSERTS_CLIENT, 0, 3);
      for (const content of ["x", ""]) {
        encoding.writeUint8(out, STRING);
        encoding.writeVarUint(out, 1);
        encoding.writeVarString(out, "other");
        encoding.writeVarString(out, content);
      }
      encoding.writeUint8(out, STRING | HAS_ORIGIN);
      for (const value of [INSERTS_CLIENT, 0]) encoding.writeVarUint(out, value);
      encoding.writeVarString(out, "y");
      encoding.writeVarUint(out, 0);
    }),
  ],
];

/** Steps that one of the slow updates may take. */
const PASSED_PIECES = 200_000;
