/**
 * Complete pages of a few devices that end at any moment and are opened again. Network, server and stores fail at
 * random. Every edit that was reported as stored is in the final document once, and all pages end with the same
 * document.
 */

import { expect, test } from "vitest";
import * as Y from "yjs";

import type { RoomId } from "../../shared/ids.ts";
import { Prng } from "../../shared/collections/prng.ts";
import { ClientFakeClock } from "../testing/fake-clock.ts";
import { MemoryStore } from "../testing/memory-store.ts";
import { ModelServer } from "../testing/model-server.ts";
import { TestPage } from "../testing/test-page.ts";

const seedsFrom = (first: number, count: number): number[] => Array.from({ length: count }, (_, index) => first + index);

type World = {
  readonly log: "keeps up" | "is slow" | "loses its end";
  /** Open pages of a device at one time. */
  readonly pagesMax: number;
  readonly seeds: readonly number[];
  /** Longer than a room waits for its store. */
  readonly opensMsMax?: number;
};
const WORLDS: readonly World[] = [
  { log: "keeps up", pagesMax: 3, seeds: seedsFrom(3_000, 16) },
  // In the last four seeds a user typed after a tentative edit that was lost.
  { log: "is slow", pagesMax: 3, seeds: [...seedsFrom(50_000, 4), 50_092, 50_145, 50_159, 50_171] },
  // The device may have the only copy, so its store is never full, and its pages run one after the other. In the last
  // three seeds a page ends before it has the snapshot.
  { log: "loses its end", pagesMax: 1, seeds: [...seedsFrom(60_000, 5), 60_065, 60_274, 60_292] },
];
const LATE: World = { log: "keeps up", pagesMax: 3, seeds: seedsFrom(70_000, 12), opensMsMax: 14_000 };
const ROOM = "notes" as RoomId;
const STEPS = 150;

class Device {
  readonly store = new MemoryStore();
  readonly pages: TestPage[] = [];
  /** The edits typed on this device with their page, and the edits reported as stored or saved. */
  readonly typed = new Map<string, TestPage>();
  readonly promised = new Set<string>();
}

async function run(log: World["log"], seed: number, { pagesMax, opensMsMax = 0 }: World): Promise<void> {
  const prng = new Prng(seed);
  const clock = new ClientFakeClock();
  const part = (max: number): number => prng.unit() * max;
  const server = new ModelServer(clock, {
    seed,
    faults: { committedFrameLost: part(0.1), editLost: part(0.1), editTwice: part(0.2), editRefused: part(0.1), delayMsMax: part(80) },
  });
  server.snapshotOf = (edits) => Y.mergeUpdates(edits.map(({ payload }) => payload));
  const room = server.room(ROOM);
  const devices = [new Device(), new Device()];
  const opening = (): Promise<void> => new Promise((resolve) => void clock.after(prng.unit() * opensMsMax, resolve));
  if (opensMsMax > 0) for (const { store } of devices) store.opening = opening;
  let pages = 0;
  const open = (device: Device): void => void device.pages.push(new TestPage(server, device.store, seed * 100 + pages++));
  for (const device of devices) open(device);
  const slowness = (["saving", "saved", "refusing"] as const).map((saving) => () => server.setSaving(ROOM, saving));
  const loseEnd = (): void => {
    room.rollBackTo(prng.below(room.head + 1));
    room.trimmedThrough = Math.min(room.trimmedThrough, room.head);
    server.cut(1006);
  };
  const misfortunes = [
    () => server.cut(1006),
    () => server.cut("silently"),
    () => room.failOver(),
    () => room.forgetClients(),
    () => (room.trimmedThrough = Math.max(room.trimmedThrough, prng.below(room.head + 1))),
    () => (server.reachable = !server.reachable),
    () => (server.reachable = true),
    ...(log === "is slow" ? slowness : []),
    ...(log === "loses its end" ? [loseEnd] : []),
    ...devices.flatMap((device) => [
      () => device.pages.splice(prng.below(device.pages.length), 1)[0]?.close(),
      () => device.pages.splice(0, 1)[0]?.provider.destroy(),
      () => device.pages.length < pagesMax && open(device),
      () => (device.store.isFull = log !== "loses its end" && !device.store.isFull && prng.chance(0.3)),
    ]),
  ];
  for (let step = 0; step < STEPS; step++) {
    for (const device of devices) {
      if (device.pages.length === 0 && prng.chance(0.5)) open(device);
      const page = device.pages[prng.below(Math.max(1, device.pages.length))];
      if (page === undefined || !prng.chance(0.5)) continue;
      const word = `<${devices.indexOf(device)}.${device.typed.size}>`;
      page.type(word);
      device.typed.set(word, page);
    }
    if (prng.chance(0.15)) misfortunes[prng.below(misfortunes.length)]!();
    await clock.advance(prng.unit() * (opensMsMax === 0 ? 150 : 1_500));
    for (const { pages: open, typed, promised } of devices) {
      for (const page of open) {
        if (!page.provider.stored) continue;
        if (log === "loses its end" && page.provider.seq !== room.head) continue; // After a gap only the log decides.
        for (const [word, author] of typed) {
          const isTentative = log === "is slow" && author !== page; // A page reports only its own edits as stored.
          if (!isTentative && page.text.includes(word)) promised.add(word);
        }
      }
    }
  }

  server.faults = { ...server.faults, committedFrameLost: 0, editLost: 0, editRefused: 0 };
  server.reachable = true;
  server.setSaving(ROOM, "saved");
  for (const device of devices) {
    device.store.isFull = false;
    device.store.opening = () => Promise.resolve(); // Otherwise the last pages would be saved before they have all edits.
    for (const page of device.pages.splice(0)) page.provider.destroy();
  }
  await clock.advance(60_000);
  for (const device of devices) open(device);
  const last = devices.flatMap((device) => device.pages);
  for (
    let second = 0;
    second < 300 && !last.every(({ provider }) => provider.saved && provider.synced && provider.seq === room.head);
    second++
  )
    await clock.advance(1_000);

  expect(last.map(({ provider }) => ({ unsaved: provider.unsavedEdits, synced: provider.synced, seq: provider.seq }))).toEqual(
    last.map(() => ({ unsaved: 0, synced: true, seq: room.head })),
  );
  const [text, ...others] = last.map((page) => page.text);
  expect(others).toEqual([text]);
  for (const { promised } of devices) {
    expect(promised.size).toBeGreaterThan(0);
    for (const word of promised) expect(text!.split(word), `${word} is there once`).toHaveLength(2);
  }
  const complete = new Y.Doc();
  for (const { payload } of room.log) Y.applyUpdate(complete, payload);
  expect(complete.getText("t").toString(), "the log has the same text").toBe(text);
  for (const { provider } of last) provider.destroy();
  await clock.advance(60_000);
  expect(clock.pending, "nothing runs on").toBe(0);
}

const runs = WORLDS.flatMap((world) => world.seeds.map((seed) => [world.log, seed, world] as const));

test.each(runs)("[KCV1] with a log that %s, no stored edit is lost or applied twice (seed %i)", run);

test.each(LATE.seeds)("[KCV2] with stores that open late, no stored edit is lost or applied twice (seed %i)", (seed) =>
  run(LATE.log, seed, LATE),
);
