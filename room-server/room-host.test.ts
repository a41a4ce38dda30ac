import { Registry } from "prom-client";
import { expect, test } from "vitest";

import type { ToOwner } from "../shared/bus/envelope.ts";
import type { RoomEntry } from "../shared/bus/placement-messages.ts";
import { decodeRecord } from "../shared/bus/record.ts";
import { readSettings } from "../shared/config.ts";
import type { ClientId, Epoch, GatewayId, Millis, RoomKey, Seq, ServerId, UnixMillis, UserId } from "../shared/ids.ts";
import type { Log } from "../shared/log.ts";
import { BacklogBudget } from "./backlog.ts";
import { roomHostOptions, roomServerSettings } from "./config.ts";
import { roomServerMetrics } from "./metrics.ts";
import type { OutgoingRecord, StoredRecord } from "./ports.ts";
import { RoomHost, type RoomHostPorts } from "./room-host.ts";

const room = "acme.notes" as RoomKey;
const own = "one" as ServerId;
const peer = "two" as ServerId;
const ann = { user: "ann" as UserId, client: "annannannannann1" as ClientId };

/** Time that passes when told to. */
class Hands {
  #now = 0;
  #timers: { at: number; run: () => void }[] = [];
  readonly clock = {
    now: () => this.#now as Millis,
    wallNow: () => this.#now as UnixMillis,
    after: (delayMs: number, run: () => void) => {
      const timer = { at: this.#now + delayMs, run };
      this.#timers.push(timer);
      return () => void (this.#timers = this.#timers.filter((other) => other !== timer));
    },
  };
  async turn(ms: number): Promise<void> {
    for (const end = this.#now + ms; this.#now < end; this.#now += 10) {
      const due = this.#timers.filter(({ at }) => at <= this.#now);
      this.#timers = this.#timers.filter((timer) => !due.includes(timer));
      for (const { run } of due) run();
      await new Promise((resolve) => setImmediate(resolve)); // Whatever was promised is kept.
    }
  }
}

function world(options: { settings?: Record<string, string>; entry?: RoomEntry; registry?: Registry } = {}) {
  const hands = new Hands();
  const stored: StoredRecord[] = [];
  const state = { logAnswers: true, natsAnswers: true, inhabited: false, entry: options.entry, subscribed: false, givenUp: 0 };
  let deliver: ((message: ToOwner, bytes: number) => void) | undefined;
  const logs = new Map([[room, stored]]);
  const logOf = (key: RoomKey): StoredRecord[] => logs.get(key) ?? logs.set(key, []).get(key)!;
  const append = (stored: StoredRecord[], record: OutgoingRecord): { kind: "appended"; streamSeq: number } | { kind: "fenced" } => {
    if ((stored.at(-1)?.streamSeq ?? 0) !== record.expectedStreamSeq) return { kind: "fenced" };
    stored.push({ record: decodeRecord(record.bytes)!, streamSeq: stored.length + 1 });
    return { kind: "appended", streamSeq: stored.length };
  };
  const answering = async <Value>(value: () => Value): Promise<Value> => {
    if (!state.natsAnswers) throw new Error("no answer");
    return value();
  };
  const ports: RoomHostPorts = {
    log: {
      append: (key, record, settled) => {
        if (state.logAnswers) setImmediate(() => settled(append(logOf(key), record)));
        return () => void (state.givenUp += 1);
      },
      readLast: (key) => answering(() => logOf(key).at(-1)),
      read: async function* (key, after, through) {
        yield* logOf(key).filter(({ streamSeq }) => streamSeq > after && streamSeq <= through);
      },
    },
    inbox: {
      subscribe: (_, receive) =>
        answering(() => {
          deliver = receive;
          state.subscribed = true;
          return { isOpen: () => state.subscribed, close: async () => void (state.subscribed = false) };
        }),
    },
    gateways: { answer: () => {}, broadcast: () => {} },
    presence: { begin: () => {}, end: () => {}, isInhabited: () => state.inhabited },
    checkpoints: { newest: async () => undefined },
    entries: {
      find: async () => state.entry,
      announce: async (_, epoch) => void (state.entry = { owner: own, epoch }),
      withdraw: async () => void (state.entry = undefined),
    },
    seal: { sealOf: () => new Uint8Array(16), isGenuine: () => true },
    operations: { report: () => {} },
  };
  const silent: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
  const settings = readSettings(roomServerSettings, { flags: options.settings ?? {}, env: {} });
  const host = new RoomHost(own, ports, roomHostOptions(settings, undefined), { clock: hands.clock, log: silent, metrics: roomServerMetrics(options.registry ?? new Registry()), budget: new BacklogBudget({ bytesMax: 1_000_000 }), warmCopy: () => undefined, loads: { count: () => {} }, isLive: (server) => server === peer });
  const send = (counter: number) => deliver?.({ kind: "edits", gateway: "gw" as GatewayId, edits: [{ author: ann, counter, ackedThrough: 0, parentSeq: 0 as Seq, payload: new Uint8Array(1) }] }, 20);
  return { host, hands, stored, state, send };
}

const claimed = (epoch: number) => ({ kind: "owned", server: own, epoch });
const otherClaim = (epoch: number): StoredRecord["record"] => ({ kind: "epoch", id: `two.${epoch}`, time: 0 as UnixMillis, epoch: epoch as Epoch, head: 0 as Seq });

test("[HOST1] a room is claimed, announced, and its edits appended", async () => {
  const { host, hands, stored, state, send } = world();
  expect(await host.claim({ room })).toEqual(claimed(1));
  send(1);
  await hands.turn(100);
  expect(stored.map(({ record }) => record.kind)).toEqual(["epoch", "edits"]);
  expect(state.entry).toEqual({ owner: own, epoch: 1 });
  expect(host.rooms).toBe(1);
});

test("[HOST2] several who ask for a room at once get the one claim's answer", async () => {
  const { host, stored } = world();
  expect(await Promise.all([host.claim({ room }), host.claim({ room }), host.claim({ room })])).toEqual([claimed(1), claimed(1), claimed(1)]);
  expect(stored).toHaveLength(1);
});

test("[HOST3] a live peer's room is left to it, unless it is the one suspected; a dead one's is taken", async () => {
  const entry = { owner: peer, epoch: 4 as Epoch };
  expect(await world({ entry }).host.claim({ room })).toEqual({ kind: "elsewhere", server: peer, epoch: 4 });
  expect(await world({ entry }).host.claim({ room, suspect: peer })).toEqual(claimed(1));
  expect(await world({ entry: { owner: "dead" as ServerId, epoch: 4 as Epoch } }).host.claim({ room })).toEqual(claimed(1));
});

test("[HOST4] asked for a room that it lost unawares, it claims it anew; if the log does not answer, it refuses", async () => {
  const { host, stored, state } = world();
  await host.claim({ room });
  state.natsAnswers = false;
  expect(await host.claim({ room })).toMatchObject({ kind: "refused" });
  state.natsAnswers = true;
  expect(await host.claim({ room })).toEqual(claimed(1));
  stored.push({ record: otherClaim(2), streamSeq: 2 });
  expect(await host.claim({ room })).toEqual(claimed(3));
});

test("[HOST5] a lost subscription is noticed when the room is asked for, and the room claimed anew", async () => {
  const { host, state } = world();
  await host.claim({ room });
  state.subscribed = false;
  expect(await host.claim({ room })).toEqual(claimed(2));
  expect(state.subscribed).toBe(true);
});

test("[HOST6] a claim that the log does not answer is refused after a while, and its append taken back", async () => {
  const { host, hands, state } = world({ settings: { claimMsMax: "1000" } });
  state.logAnswers = false;
  const reply = host.claim({ room });
  await hands.turn(2_500);
  expect(await reply).toMatchObject({ kind: "refused" });
  expect(state.givenUp).toBe(1);
  expect(state.subscribed).toBe(false);
  expect(host.rooms).toBe(0);
});

test("[HOST7] a server takes only so many rooms", async () => {
  const { host } = world({ settings: { roomsMax: "1" } });
  await host.claim({ room });
  expect(await host.claim({ room: "acme.other" as RoomKey })).toMatchObject({ kind: "refused", reason: expect.stringContaining("COROOM_ROOMS_MAX") });
  expect(await host.claim({ room })).toMatchObject({ kind: "owned" });
});

test("[HOST20] asked for many rooms at once, it takes as many as it may and counts the others; room for one is there again when one has gone", async () => {
  const registry = new Registry();
  const { host, hands } = world({ settings: { roomsMax: "3", roomIdleMsMax: "1000" }, registry });
  const ask = (count: number) => Promise.all(Array.from({ length: count }, (_, index) => host.claim({ room: `acme.r${index}` as RoomKey })));
  const first = ask(10);
  await hands.turn(100);
  expect((await first).map(({ kind }) => kind).sort()).toEqual([...Array<string>(3).fill("owned"), ...Array<string>(7).fill("refused")]);
  expect(host.rooms).toBe(3);
  expect(await registry.getSingleMetricAsString("coroom_room_server_limits_reached_total")).toContain('{limit="rooms"} 7');
  await hands.turn(3_000);
  const again = ask(1);
  await hands.turn(100);
  expect((await again)[0]).toMatchObject({ kind: "owned" });
});

test("[HOST21] two who ask for the same room while there is place for one both get it", async () => {
  const { host, hands } = world({ settings: { roomsMax: "1" } });
  const both = Promise.all([host.claim({ room }), host.claim({ room })]);
  await hands.turn(100);
  expect((await both).map(({ kind }) => kind)).toEqual(["owned", "owned"]);
});

test("[HOST8] stopping, it commits what waits, withdraws its entries, and refuses claims", async () => {
  const { host, hands, stored, state, send } = world();
  await host.claim({ room });
  await hands.turn(50);
  send(1);
  send(2);
  const stopped = host.stop();
  expect(await host.claim({ room })).toMatchObject({ kind: "refused" });
  await hands.turn(500);
  await stopped;
  expect(stored.map(({ record }) => record.kind)).toEqual(["epoch", "edits", "edits"]);
  expect(state.entry).toBeUndefined();
});

test("[HOST9] stopping, it waits only so long for a log that does not answer", async () => {
  const { host, hands, state, send } = world({ settings: { releaseMsMax: "1000" } });
  await host.claim({ room });
  await hands.turn(50);
  state.logAnswers = false;
  send(1);
  const stopped = host.stop();
  await hands.turn(1_500);
  await stopped;
  expect(state.givenUp).toBe(1);
});
