import { expect, test } from "vitest";

import type { GatewayId, Millis, RoomKey, Seq } from "../../shared/ids.ts";
import { type ReplayKey, type ReplayPosition, ReplayPositions } from "./log-replay.ts";

const at = (seq: number, gateway = "gw"): ReplayKey => ({ gateway: gateway as GatewayId, room: "acme.board" as RoomKey, seq: seq as Seq });
const replayPosition = (streamSeq: number): ReplayPosition => ({ streamSeq, readBytes: 0, restUntil: 0 as Millis });

test("[BKM1] all requests of one gateway that continue after the same edit use its replay position, until a read from it fails", () => {
  const replayPositions = new ReplayPositions(10);
  replayPositions.keep(at(3), replayPosition(30));
  replayPositions.keep(at(3), replayPosition(33));
  expect([at(2), at(3, "other"), at(3), at(3)].map((place) => replayPositions.find(place)?.streamSeq)).toEqual([
    undefined,
    undefined,
    33,
    33,
  ]);
  replayPositions.forget(at(3));
  expect(replayPositions.find(at(3))).toBeUndefined();
});

test("[BKM2] the oldest position is removed at the limit", () => {
  const replayPositions = new ReplayPositions(2);
  for (const seq of [1, 2, 1, 3]) replayPositions.keep(at(seq), replayPosition(seq));
  expect([1, 2, 3].map((seq) => replayPositions.find(at(seq))?.streamSeq)).toEqual([1, undefined, 3]);
});
