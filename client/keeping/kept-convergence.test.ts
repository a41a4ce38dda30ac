/**
 * Pages of a few devices, whole, that end at any moment and are opened again, over a network, a server and stores that
 * fail at random: what was said to be stored is there in the end, once, and everybody ends with the same document.
 */

import { expect, test } from "vitest";
import * as Y from "yjs";

import type { RoomId } from "../../shared/ids.ts";
import { Prng } from "../../shared/prng.ts";
import { FakeClock } from "../testing/fake-clock.ts";
import { MemoryStore } from "../testing/memory-store.ts";
import { ModelServer } from "../testing/model-server.ts";
import { Page } from "../testing/page.ts";

const SEEDS = Array.from({ length: 16 }, (_, index) => 3_000 + index);
const ROOM = "notes" as RoomId;
const STEPS = 150;

class Device {
  readonly store = new MemoryStore();
  readonly pages: Page[] = [];
  /** Typed here; those said to be stored or saved. */
  readonly typed: string[] = [];
  readonly promised = new Set<string>();
}

async function run(seed: number): Promise<void> {
  const prng = new Prng(seed);
  const clock = new FakeClock();
  const part = (max: number): number => prng.unit() * max;
  const server = new ModelServer(clock, {
    seed,
    faults: { committedFrameLost: part(0.1), editLost: part(0.1), editTwice: part(0.2), editRefused: part(0.1), delayMsMax: part(80) },
  });
  server.snapshotOf = (edits) => Y.mergeUpdates(edits.map(({ payload }) => payload));
  const room = server.room(ROOM);
  const devices = [new Device(), new Device()];
  let pages = 0;
  const open = (device: Device): void => void device.pages.push(new Page(server, device.store, seed * 100 + pages++));
  for (const device of devices) open(device);
  const misfortunes = [
    () => server.cut(1006),
    () => server.cut("silently"),
    () => room.failOver(),
    () => room.forgetClients(),
    () => (room.trimmedThrough = Math.max(room.trimmedThrough, prng.below(room.head + 1))),
    () => (server.reachable = !server.reachable),
    () => (server.reachable = true),
    ...devices.flatMap((device) => [
      () => device.pages.splice(prng.below(device.pages.length), 1)[0]?.close(),
      () => device.pages.splice(0, 1)[0]?.provider.destroy(),
      () => device.pages.length < 3 && open(device),
      () => (device.store.isFull = !device.store.isFull && prng.chance(0.3)),
    ]),
  ];
  for (let step = 0; step < STEPS; step++) {
    for (const device of devices) {
      if (device.pages.length === 0 && prng.chance(0.5)) open(device);
      const page = device.pages[prng.below(Math.max(1, device.pages.length))];
      if (page === undefined || !prng.chance(0.5)) continue;
      const word = `<${devices.indexOf(device)}.${device.typed.length}>`;
      page.type(word);
      device.typed.push(word);
    }
    if (prng.chance(0.15)) misfortunes[prng.below(misfortunes.length)]!();
    await clock.advance(prng.unit() * 150);
    for (const { pages: open, typed, promised } of devices) {
      for (const { provider, text } of open) if (provider.stored) for (const word of typed) if (text.includes(word)) promised.add(word);
    }
  }

  server.faults = { ...server.faults, committedFrameLost: 0, editLost: 0, editRefused: 0 };
  server.reachable = true;
  for (const device of devices) {
    device.store.isFull = false;
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
  const whole = new Y.Doc();
  for (const { payload } of room.log) Y.applyUpdate(whole, payload);
  expect(whole.getText("t").toString(), "and so it stands in the log").toBe(text);
  for (const { provider } of last) provider.destroy();
  await clock.advance(60_000);
  expect(clock.pending, "nothing runs on").toBe(0);
}

test.each(SEEDS)("[KCV1] nothing that was stored is lost or doubled (seed %i)", run);
