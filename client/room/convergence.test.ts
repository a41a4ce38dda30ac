/**
 * Several complete clients over a network and a server that fail at random. The log contains every edit once and each
 * author's edits in order. All clients end with all edits in the log's order.
 */

import { expect, test } from "vitest";

import { Prng } from "../../shared/collections/prng.ts";
import type { RoomId } from "../../shared/ids.ts";
import type { CommittedEdit } from "../../shared/wire/frames.ts";
import { ClientFakeClock } from "../testing/fake-clock.ts";
import { LIMITS } from "../testing/model-connection.ts";
import { ModelServer } from "../testing/model-server.ts";
import { RoomConnection } from "./room-connection-host.ts";
import type { EditFormat } from "./unsent.ts";

const REGRESSION_SEEDS: number[] = [1, 7];
const FRESH_SEEDS = Array.from({ length: 20 }, (_, index) => 1000 + index);
const ROOM = "notes" as RoomId;
const EDITS_PER_CLIENT = 50;

/** A payload is a list of numbers of four bytes, one for each keystroke. */
const KEYSTROKE_BYTES = 4;
const format: EditFormat = {
  merge: (payloads) => Uint8Array.from(payloads.flatMap((payload) => [...payload])),
  split: (payload, bytesMax) =>
    Array.from({ length: Math.ceil(payload.length / bytesMax) }, (_, index) => payload.slice(index * bytesMax, (index + 1) * bytesMax)),
};
const keystroke = (client: number, index: number): Uint8Array => Uint8Array.of(client, index >> 8, index & 255, 0);
const keystrokesIn = (edits: readonly { payload: Uint8Array }[]): string[] =>
  edits.flatMap(({ payload }) =>
    Array.from({ length: payload.length / KEYSTROKE_BYTES }, (_, index) =>
      payload.slice(index * KEYSTROKE_BYTES, (index + 1) * KEYSTROKE_BYTES).join("."),
    ),
  );

class Person {
  readonly host: RoomConnection;
  readonly number: number;
  typed = 0;
  /** The edits that the application holds: a snapshot replaces them, and edits extend them. */
  held: string[] = [];
  seqs: number[] = [];

  constructor(number: number, server: ModelServer, seed: number, mergeUnsent: boolean) {
    this.number = number;
    this.host = new RoomConnection({ url: "ws://h", token: () => "t.o.k", room: ROOM, format, mergeUnsent }, server.world(seed));
    this.host.on("edits", (edits) => {
      for (const { seq } of edits) {
        if (this.seqs.length > 0) expect(seq).toBe(this.seqs.at(-1)! + 1);
        this.seqs.push(seq);
      }
      this.held.push(...keystrokesIn(edits));
    });
    this.host.on("snapshot", ({ position, payload }) => {
      this.held = keystrokesIn([{ payload }]);
      this.seqs = [position.seq];
    });
  }

  type(): void {
    this.host.send(keystroke(this.number, this.typed));
    this.typed += 1;
  }
}

async function run(seed: number): Promise<void> {
  const prng = new Prng(seed);
  const clock = new ClientFakeClock();
  const part = (max: number): number => prng.unit() * max;
  const faults = {
    committedFrameLost: part(0.2),
    committedFrameTwice: part(0.2),
    editLost: part(0.2),
    editTwice: part(0.3),
    editRefused: part(0.2),
    delayMsMax: part(80),
  };
  const server = new ModelServer(clock, { seed, faults });
  server.limits = { ...LIMITS, editBytesMax: prng.chance(0.3) ? 8 : 5_000 };
  server.snapshotOf = (edits: readonly CommittedEdit[]) => format.merge(edits.map(({ payload }) => payload));
  const room = server.room(ROOM);
  const people = Array.from(
    { length: 2 + prng.below(3) },
    (_, index) => new Person(index + 1, server, seed * 10 + index, prng.chance(0.6)),
  );
  const inLog = (): Set<string> => new Set(keystrokesIn(room.log));

  const misfortunes = [
    () => server.cut(1006),
    () => server.cut("silently"),
    () => server.cut(4001),
    () => room.failOver(),
    () => server.setSaving(ROOM, "saving"),
    () => server.setSaving(ROOM, "saved"),
    () => (room.trimmedThrough = prng.below(room.head + 1)),
    () => (server.snapshotsAvailable = !server.snapshotsAvailable),
    () => (server.reachable = !server.reachable),
    () => people[prng.below(people.length)]!.host.disconnect(),
    () => people[prng.below(people.length)]!.host.connect(),
  ];
  while (people.some(({ typed }) => typed < EDITS_PER_CLIENT)) {
    for (const person of people) if (person.typed < EDITS_PER_CLIENT && prng.chance(0.5)) person.type();
    if (prng.chance(0.08)) misfortunes[prng.below(misfortunes.length)]!();
    await clock.advance(prng.unit() * 150);
    const logged = inLog();
    for (const { host, number, typed } of people) {
      if (host.saved) for (let index = 0; index < typed; index++) expect(logged).toContain(keystroke(number, index).join("."));
    }
  }

  server.faults = { ...server.faults, committedFrameLost: 0, editLost: 0, editRefused: 0 };
  server.reachable = server.snapshotsAvailable = true;
  server.setSaving(ROOM, "saved");
  for (const { host } of people) host.connect();
  for (let second = 0; second < 300 && !people.every(({ host }) => host.saved && host.synced && host.seq === room.head); second++)
    await clock.advance(1_000);

  const log = keystrokesIn(room.log);
  expect(people.map(({ host }) => ({ saved: host.saved, unsaved: host.unsavedEdits, synced: host.synced, seq: host.seq }))).toEqual(
    people.map(() => ({ saved: true, unsaved: 0, synced: true, seq: room.head })),
  );
  expect([...log].sort(), "every edit is in the log once").toEqual(
    people.flatMap(({ number, typed }) => Array.from({ length: typed }, (_, index) => keystroke(number, index).join("."))).sort(),
  );
  for (const { number, held, host } of people) {
    const own = log.filter((entry) => entry.startsWith(`${number}.`));
    expect(own, "each author's edits are in order").toEqual(
      Array.from({ length: EDITS_PER_CLIENT }, (_, index) => keystroke(number, index).join(".")),
    );
    expect(held, "everybody has the log's order").toEqual(log);
    host.destroy();
  }
  await clock.advance(10_000);
  expect(clock.pending, "nothing runs on").toBe(0);
}

test.each([...REGRESSION_SEEDS, ...FRESH_SEEDS])("[CVG1] no edit is lost, duplicated or out of order (seed %i)", run);
