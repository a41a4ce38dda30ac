import { expect, test } from "vitest";
import * as Y from "yjs";

import type { UserId } from "../shared/ids.ts";
import { NESTING_MAX } from "../shared/yjs/bounded-integration.ts";
import { EMPTY_STATE, mergeEdits } from "./merge.ts";
import { KNOWN_IDS_MAX, mainWriters, YjsAuthors } from "./yjs-authors.ts";

const [ANN, MALLORY, BOB] = ["ann", "mallory", "bob"] as UserId[] as [UserId, UserId, UserId];

/** An editor under this Yjs client id. `type` returns its edit. */
function editor(yjsClient: number, state = EMPTY_STATE) {
  const doc = new Y.Doc();
  doc.clientID = yjsClient;
  Y.applyUpdate(doc, state);
  return {
    type: (text: string): Uint8Array => {
      const before = Y.encodeStateVector(doc);
      doc.getText("body").insert(0, text);
      return Y.encodeStateAsUpdate(doc, before);
    },
    everything: (): Uint8Array => Y.encodeStateAsUpdate(doc),
  };
}

/** A room whose merges are judged. Each call is one merge. */
function room() {
  const authors = new YjsAuthors();
  let state = EMPTY_STATE;
  return {
    state: () => state,
    merge: (...edits: readonly (readonly [UserId, Uint8Array])[]) => {
      const merged = mergeEdits(state, edits.map(([, edit]) => edit), authors.of(edits.map(([user]) => user))); // prettier-ignore
      state = merged.state;
      return authors.receiveUses(merged.uses!);
    },
  };
}

test("[YAU1] a user who writes under the Yjs client id of another user is reported once, whether before or after the other", () => {
  for (const [first, second] of [
    [ANN, MALLORY],
    [MALLORY, ANN],
  ] as const) {
    // prettier-ignore
    for (const isOneMerge of [true, false]) {
      const { merge } = room();
      const [own, forged] = [editor(7).type("mine"), editor(7).type("not yours")];
      const disputed = isOneMerge
        ? merge([first, own], [second, forged])
        : [...merge([first, own]), ...merge([second, forged]), ...merge([second, editor(7).type("not yours either, and longer")])];
      expect(disputed).toEqual([{ yjsClient: 7, user: second, introducedBy: first }]);
    }
  }
});

test("[YAU2] a repeat of structs that the document has is not reported, because any client may send them after a synchronisation", () => {
  const { merge, state } = room();
  const ann = editor(7);
  const first = ann.type("one ");
  expect(merge([ANN, first], [BOB, ann.everything()], [BOB, first])).toEqual([]);
  expect(merge([ANN, ann.type("two ")])).toEqual([]);
  expect(merge([BOB, state()])).toEqual([]);
  const restarted = new YjsAuthors(); // After a restart, no author is known.
  const { uses } = mergeEdits(state(), [ann.everything(), ann.type("three")], restarted.of([BOB, ANN]));
  expect(restarted.receiveUses(uses!)).toEqual([]);
  expect(uses).toEqual([{ yjsClient: 7, user: ANN, introducedBy: undefined }]);
});

test("[YAU3] structs that wait for missing ones are reported before Yjs integrates them", () => {
  const { merge } = room();
  const [ann, forger] = [editor(7), editor(7)];
  forger.type("1234");
  const ahead = forger.type("forged");
  expect(merge([ANN, ann.type("on")])).toEqual([]);
  expect(merge([MALLORY, ahead])).toEqual([{ yjsClient: 7, user: MALLORY, introducedBy: ANN }]);
});

test("[YAU4] a room remembers a bounded number of ids, and bytes that are no Yjs update change nothing", () => {
  const { merge } = room();
  merge([ANN, editor(7).type("mine")]);
  merge(...Array.from({ length: KNOWN_IDS_MAX }, (_, index) => [MALLORY, editor(100 + index).type("x")] as const));
  expect(merge([MALLORY, Uint8Array.of(1, 200)], [MALLORY, Uint8Array.of(255)], [MALLORY, Uint8Array.of()])).toEqual([]);
  const forged = editor(7).type("longer than mine");
  expect(merge([MALLORY, forged]), "forgotten").toEqual([]);
  expect(merge([ANN, editor(7).type("longer than everything else")])).toEqual([{ yjsClient: 7, user: ANN, introducedBy: MALLORY }]);
});

test("[YAU5] an edit that the document refuses introduces no id, and proves no repeat", () => {
  const { merge } = room();
  const doc = new Y.Doc();
  doc.clientID = 7;
  doc.getText("body").insert(0, "of the refused edit");
  doc.getMap("values").set("deep", JSON.parse("[".repeat(2 * NESTING_MAX) + "]".repeat(2 * NESTING_MAX)));
  const refused = Y.encodeStateAsUpdate(doc);
  expect(merge([MALLORY, refused])).toEqual([]);
  const ann = editor(7);
  expect(merge([ANN, ann.type("mine")], [MALLORY, refused])).toEqual([]);
  const [own, forged] = [ann.type(" and more"), editor(7).type("longer than what ann wrote")];
  expect(merge([ANN, own], [MALLORY, refused], [MALLORY, forged])).toEqual([{ yjsClient: 7, user: MALLORY, introducedBy: ANN }]);
});

test("[YAU6] the main writers are those with most edits, at most three, the first of them first", () => {
  const edits = ["a", "b", "b", "c", "c", "c", "d", "a", "d", "d", "d"] as UserId[];
  expect(mainWriters(new YjsAuthors().of(edits))).toEqual(["d", "c", "a"]);
  expect(mainWriters(new YjsAuthors().of([]))).toEqual([]);
});
