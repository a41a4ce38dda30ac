/**
 * Yjs updates of a hostile writer, from the check to the merged document. An input has several updates, each preceded
 * by two bytes with its length. The document service merges all updates at once and in two parts, a client applies them
 * one after the other, and the bridge merges their bytes.
 */

import * as Y from "yjs";

import { assert } from "../../shared/assert.ts";
import {
  conflictBomb,
  deletionBomb,
  HALF_UPDATES,
  nestedConflictBomb,
  NESTING_FUSE,
  nestingBomb,
  valueBomb,
} from "../../shared/testing/yjs-bombs.ts";
import { UpdateRefused, withinBounds } from "../../shared/yjs/bounded-integration.ts";
import { checkUpdate } from "../../shared/yjs/checked-update.ts";
import { factsOf } from "../../bridges/update-facts.ts";
import { mergeContent, openContent } from "../../bridges/yjs-work.ts";
import { contentJson, diffOf, textOf } from "../../document-service/content.ts";
import { EMPTY_STATE, mergeEdits } from "../../document-service/merge.ts";
import { assertEqual } from "./held.ts";
import { inParts, joinedParts } from "./parts.ts";

/** A state contains ids that an update omits for consecutive structs. */
const STATE_BYTES_PER_BYTE = 16;

export function seeds(): Uint8Array[] {
  const typed = session(["text", "map", "array", "xml", "delete"]);
  return [
    ...typed.map((update) => joinedParts([update])),
    joinedParts(typed),
    joinedParts(typed.toReversed()),
    joinedParts([Y.mergeUpdates(typed)]),
    joinedParts([conflictBomb(20)]),
    joinedParts([nestedConflictBomb(20)]),
    joinedParts([nestingBomb(40), NESTING_FUSE]),
    joinedParts([nestingBomb(40, 40), nestingBomb(40), NESTING_FUSE]),
    joinedParts([deletionBomb(20)]),
    joinedParts([valueBomb(20)]),
    ...HALF_UPDATES.map(([, update]) => joinedParts([update])),
  ];
}

function session(changes: readonly string[]): Uint8Array[] {
  const updates: Uint8Array[] = [];
  changes.forEach((change, index) => {
    const doc = new Y.Doc();
    for (const update of updates) Y.applyUpdate(doc, update);
    doc.clientID = index + 1;
    doc.on("update", (update: Uint8Array) => updates.push(update));
    const text = doc.getText("t");
    if (change === "text") text.insert(0, "abcdef", { bold: true });
    if (change === "map") doc.getMap("m").set("k", new Y.Map([["inner", [1, null, "x", { y: 2.5 }]]]));
    if (change === "array") doc.getArray("a").insert(0, [1, new Uint8Array([1]), new Y.Text("n"), new Y.Doc()]);
    if (change === "xml") doc.getXmlFragment("x").insert(0, [new Y.XmlElement("p"), new Y.XmlText("z")]);
    if (change === "delete") text.delete(1, 3);
    text.insert(text.length, "é");
  });
  return updates;
}

export function fuzz(input: Uint8Array): boolean {
  const edits = inParts(input);
  const { state, refused } = mergeEdits(EMPTY_STATE, edits);
  const bytes = edits.reduce((sum, { byteLength }) => sum + byteLength, 0);
  assert(state.byteLength <= EMPTY_STATE.byteLength + STATE_BYTES_PER_BYTE * bytes, "a state is not much larger than its edits");
  assert(refused >= 0 && refused <= edits.length, "no more edits are refused than there are");
  const content = contentOf(state);
  assertEqual(contentOf(mergeEdits(state, edits).state), content, "edits that are merged again change nothing");
  const inTurn = edits.reduce((before, edit) => mergeEdits(before, [edit]).state, EMPTY_STATE);
  assertEqual(contentOf(inTurn), content, "edits merged one by one make the same document");
  const shown = clientsState(edits);
  if (shown !== undefined) assertEqual(contentOf(shown), content, "a client shows what the snapshot has");
  assertEqual(contentOf(bridgesState(edits)), content, "a client of the bridge shows what the snapshot has");
  return state.byteLength > EMPTY_STATE.byteLength;
}

/** The bridge merges the bytes without integrating them. */
function bridgesState(edits: readonly Uint8Array[]): Uint8Array {
  const parts = [EMPTY_STATE, ...edits.filter((edit) => factsOf(edit).kind === "fit")];
  const { content } = mergeContent({ parts, stateVector: Y.encodeStateVector(new Map()), condense: false });
  openContent(content);
  return content;
}

/** The content and the clocks of a document. Each reader must be able to read it. */
function contentOf(state: Uint8Array): unknown {
  textOf(state, undefined);
  const doc = new Y.Doc();
  Y.applyUpdate(doc, state);
  const vector = Y.encodeStateVector(doc);
  doc.destroy();
  assert(diffOf(state, vector).kind === "diff", "a state vector of the document is read");
  return [JSON.parse(new TextDecoder().decode(contentJson(state, []))), new Map(Y.decodeStateVector(vector))];
}

/** A client refuses an edit before it applies any part of it. If it applied a part, it cannot continue: undefined. */
function clientsState(edits: readonly Uint8Array[]): Uint8Array | undefined {
  const doc = new Y.Doc();
  for (const edit of edits) {
    if (checkUpdate(edit, doc).kind === "unfit") continue;
    try {
      withinBounds(() => Y.applyUpdate(doc, edit));
    } catch (error) {
      if (error instanceof UpdateRefused) return undefined;
      throw error;
    }
    assert(doc._transaction === null && doc._transactionCleanups.length === 0, "the document of a client emits what it applies");
  }
  const state = Y.encodeStateAsUpdate(doc);
  doc.destroy();
  return state;
}
