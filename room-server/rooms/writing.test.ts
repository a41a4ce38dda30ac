import { expect, test } from "vitest";

import type { SubmittedEdit } from "../../shared/bus/envelope.ts";
import type { ClientId, Epoch, Millis, RoomKey, Seq, UserId } from "../../shared/ids.ts";
import { Sequencer } from "./sequencer.ts";
import { WritingState } from "./intake.ts";

const ann = { user: "ann" as UserId, client: "annannannannann1" as ClientId };
const at = (ms: number) => ms as Millis;
const state = { epoch: 1 as Epoch, saving: "saved" } as const;
const options = {
  unackedEditsMax: 5,
  unackedBytesMax: 1_000,
  recordBytesMax: 100,
  refusedRetryMs: 1_000,
  gapQuietMs: 200,
  beaconMs: 1_000,
  beaconsWhenQuiet: 1,
};
const edit = (counter: number): SubmittedEdit => ({
  author: ann,
  counter,
  ackedThrough: 0,
  parentSeq: 0 as Seq,
  payload: new Uint8Array([counter]),
});

function writing(): WritingState {
  const sequencer = new Sequencer({ dedupeMsMin: 300_000, writersMax: 100, runsPerWriterMax: 8 }, 0 as Seq);
  return new WritingState(
    "acme.notes" as RoomKey,
    { sequencer, seal: { sealOf: () => new Uint8Array(16), isGenuine: () => true } },
    options,
  );
}

test("[WRG1] writing is over once the log has all edits", () => {
  const begun = writing();
  expect(begun.isIdle).toBe(true);
  begun.intake.receiveEdit(edit(1), state, at(0));
  expect(begun.isIdle).toBe(false);
  begun.unacked.takeNext(at(0));
  expect(begun.isIdle).toBe(false);
  begun.unacked.settle();
  expect(begun.isIdle).toBe(true);
});

test("[WRG2] writing is not over while a writer was refused for a gap a moment ago, because it would be refused again", () => {
  const begun = writing();
  begun.intake.receiveEdit(edit(2), state, at(0));
  expect(begun.isIdle).toBe(false);
  begun.intake.forgetExpired(at(options.gapQuietMs));
  expect(begun.isIdle).toBe(true);
});

test("[WRG3] writing is not over while the room is throttled, because its first edits would not share a record", () => {
  const begun = writing();
  begun.unacked.gatherFor(500);
  expect(begun.isIdle).toBe(false);
  begun.unacked.gatherFor(0);
  expect(begun.isIdle).toBe(true);
});

test("[WRG4] writing is not over before gateways received often enough that the room is saved again", () => {
  const begun = writing();
  for (const [saving, now] of [
    ["saving", 0],
    ["saved", 1],
  ] as const) {
    expect(begun.savingAnnouncer.due(saving, at(now))).toBe("changed");
    expect(begun.isIdle).toBe(false);
  }
  const again: (string | undefined)[] = [];
  for (let now = options.beaconMs + 1; !begun.isIdle && again.length < 10; now += options.beaconMs)
    again.push(begun.savingAnnouncer.due("saved", at(now)));
  expect(again).toEqual(["again"]);
});
