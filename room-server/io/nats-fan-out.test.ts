import { expect, test } from "vitest";

import { encodeFromOwner } from "../../shared/bus/envelope.ts";
import { encodeEditsRecord, encodeEpochRecord } from "../../shared/bus/record.ts";
import { subjectsOf } from "../../shared/bus/subjects.ts";
import type { ClientId, Epoch, RoomKey, Seq, UnixMillis, UserId } from "../../shared/ids.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";
import { natsFanOut } from "./nats-fan-out.ts";

test("[NAT28] a replica receives stored records with their place, beacons and deletions, and is informed when it may have missed some", async () => {
  type Message = { data: Uint8Array; headers?: { get: () => string } };
  let deliver: (error: Error | null, message: Message) => void = () => {};
  let sendStatus: (type: string) => void = () => {};
  let isClosed = false;
  const nats = {
    subscribe: (_: string, { callback }: { callback: typeof deliver }) => {
      deliver = callback;
      return { isClosed: () => isClosed, unsubscribe: () => (isClosed = true) };
    },
    flush: () => Promise.resolve(),
    async *status() {
      for (;;) yield { type: await new Promise<string>((resolve) => (sendStatus = resolve)) };
    },
  };
  const fanOut = natsFanOut(nats as unknown as NatsConnection, subjectsOf("test"));
  let gaps = 0;
  fanOut.onGap(() => void (gaps += 1));
  const received: unknown[] = [];
  const subscription = await fanOut.subscribe("acme.notes" as RoomKey, (announcement) => void received.push(announcement));

  const stamp = { id: "s.1", time: 0 as UnixMillis };
  const epoch = { ...stamp, epoch: 3 as Epoch, head: 5 as Seq };
  const edit = { client: "c".repeat(16) as ClientId, counter: 1, parentSeq: 0 as Seq, payload: Uint8Array.of(7) };
  const edits = { epoch: 3 as Epoch, firstSeq: 6 as Seq, edits: [edit] };
  const users = new Map([[edit.client, "ann" as UserId]]);
  const stored = (data: Uint8Array): Message => ({ data, headers: { get: () => "9" } });
  deliver(null, stored(encodeEpochRecord(epoch)));
  const ofNetwork = encodeEditsRecord({ ...stamp, edits, users });
  deliver(null, stored(ofNetwork));
  ofNetwork.fill(0); // NATS uses its buffer again.
  deliver(null, { data: encodeEpochRecord(epoch) }); // Only the log names the place of a record.
  deliver(null, { data: encodeFromOwner({ kind: "beacon", epoch: 3 as Epoch, head: 6 as Seq }) });
  deliver(null, { data: encodeFromOwner({ kind: "saving", epoch: 3 as Epoch, state: "saved" }) });
  deliver(null, { data: encodeFromOwner({ kind: "deleted", ...stamp }) });
  deliver(null, { data: new Uint8Array(4) });
  deliver(new Error("no permission"), stored(encodeEpochRecord(epoch)));
  expect(received).toEqual([
    { record: { kind: "epoch", ...epoch }, streamSeq: 9 },
    { record: { kind: "edits", ...stamp, edits, users, editsBytes: expect.any(Uint8Array) as Uint8Array }, streamSeq: 9 },
    { kind: "beacon", head: 6 },
    { kind: "deleted", ...stamp },
  ]);

  const settled = () => new Promise((resolve) => setImmediate(resolve));
  await settled();
  sendStatus("disconnect");
  await settled();
  expect(gaps).toBe(0);
  sendStatus("reconnect");
  await settled();
  expect([gaps, subscription.isOpen()]).toEqual([1, true]);
  await subscription.close();
  expect(subscription.isOpen()).toBe(false);
});
