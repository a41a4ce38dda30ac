import { expect, test } from "vitest";

import type { GatewayId, Millis, RoomKey, Seq } from "../../shared/ids.ts";
import { type Bookmark, Bookmarks, type Place } from "./bookmarks.ts";

const at = (seq: number, gateway = "gw"): Place => ({ gateway: gateway as GatewayId, room: "acme.board" as RoomKey, seq: seq as Seq });
const bookmark = (streamSeq: number): Bookmark => ({ streamSeq, readBytes: 0, restUntil: 0 as Millis });

test("[BKM1] a bookmark is for all who ask on behind the very edit, over the same gateway, until it leads nowhere", () => {
  const bookmarks = new Bookmarks(10);
  bookmarks.keep(at(3), bookmark(30));
  bookmarks.keep(at(3), bookmark(33));
  expect([at(2), at(3, "other"), at(3), at(3)].map((place) => bookmarks.find(place)?.streamSeq)).toEqual([undefined, undefined, 33, 33]);
  bookmarks.forget(at(3));
  expect(bookmarks.find(at(3))).toBeUndefined();
});

test("[BKM2] past so many the oldest goes", () => {
  const bookmarks = new Bookmarks(2);
  for (const seq of [1, 2, 1, 3]) bookmarks.keep(at(seq), bookmark(seq));
  expect([1, 2, 3].map((seq) => bookmarks.find(at(seq))?.streamSeq)).toEqual([1, undefined, 3]);
});
