import { expect, test } from "vitest";

import type { GatewayId, Millis, RoomKey, Seq } from "../../shared/ids.ts";
import { type Bookmark, Bookmarks, type Place } from "./bookmarks.ts";

const at = (seq: number, gateway = "gw"): Place => ({ gateway: gateway as GatewayId, room: "acme.board" as RoomKey, seq: seq as Seq });
const bookmark = (streamSeq: number): Bookmark => ({ streamSeq, readBytes: 0, restUntil: 0 as Millis });

test("[BKM1] a bookmark is for whoever asks on behind the very edit, over the same gateway, and once", () => {
  const bookmarks = new Bookmarks(10);
  bookmarks.keep(at(3), bookmark(30));
  bookmarks.keep(at(3), bookmark(33));
  expect([bookmarks.take(at(2)), bookmarks.take(at(3, "other")), bookmarks.take(at(3)), bookmarks.take(at(3))]).toEqual([
    undefined,
    undefined,
    bookmark(33),
    undefined,
  ]);
});

test("[BKM2] past so many the oldest goes: nobody asked on there", () => {
  const bookmarks = new Bookmarks(2);
  for (const seq of [1, 2, 1, 3]) bookmarks.keep(at(seq), bookmark(seq));
  expect([1, 2, 3].map((seq) => bookmarks.take(at(seq))?.streamSeq)).toEqual([1, undefined, 3]);
});
