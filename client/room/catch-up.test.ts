import { expect, test } from "vitest";

import type { Epoch, Position, Seq } from "../../shared/ids.ts";
import { RoomCatchUp, Resync } from "./catch-up.ts";
import type { IncomingEdits } from "./incoming-edits.ts";

const at = (seq: number): Position => ({ epoch: 1 as Epoch, seq: seq as Seq });

function catchUpAt(seq: number) {
  const feed = { position: at(seq) } as { position: Position };
  const resync = new Resync({ baseMs: 100, maxMs: 1_000, jitterMs: 0 }, () => 0);
  return { feed, catchUp: new RoomCatchUp(feed as IncomingEdits, resync) };
}

test("[CAT1] a client that was given edits beyond the head after it sent JOIN joins again from its position", () => {
  const { feed, catchUp } = catchUpAt(47);
  expect(catchUp.beginJoin()).toEqual(at(47));
  feed.position = at(48); // The server judged position 47, and its log ends there.
  expect([catchUp.joined(47 as Seq, []), catchUp.synced]).toEqual(["rejoin", false]);
  expect(catchUp.beginJoin()).toEqual(at(48));
  expect(catchUp.joined(47 as Seq, []), "the server sends RESYNC_REQUIRED").toBe("go-on");
});

test("[CAT2] a client that was given edits up to the head after it sent JOIN has caught up", () => {
  const { feed, catchUp } = catchUpAt(47);
  catchUp.beginJoin();
  feed.position = at(48);
  expect([catchUp.joined(48 as Seq, []), catchUp.synced]).toEqual(["go-on", true]);
});

test("[CAT3] a client has caught up once it is given an edit of a later epoch: the log lost the edits up to the head in JOINED", () => {
  const { feed, catchUp } = catchUpAt(7);
  const joined = { epoch: 3 as Epoch, head: 27 as Seq };
  catchUp.joined(joined.head, []);
  feed.position = { epoch: 3 as Epoch, seq: 8 as Seq };
  catchUp.deliveredSoFar(joined);
  expect(catchUp.synced, "edits up to the head are missing").toBe(false);
  feed.position = { epoch: 4 as Epoch, seq: 9 as Seq };
  catchUp.deliveredSoFar(joined);
  expect(catchUp.synced).toBe(true);
});
