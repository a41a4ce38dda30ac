/**
 * Many rooms and few document services, which are killed, stopped and started at random while edits are appended. At
 * the end every room's document must equal its writer's text. Then the memory of two services is compared: one has read
 * all these rooms, of which few still have edits; the other has read only those few. The experiment writes the log
 * directly, on a real nats-server, because only the document service is measured.
 */

import { createHash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { jetstream, type JetStreamClient } from "@nats-io/jetstream";
import { headers } from "nats";
import * as Y from "yjs";

import { encodeEditsRecord } from "../shared/bus/record.ts";
import { subjectsOf, partitionOf, type Subjects } from "../shared/bus/subjects.ts";
import { Prng } from "../shared/collections/prng.ts";
import type { RoomKey, ClientId, Epoch, Seq, UnixMillis, UserId } from "../shared/ids.ts";
import { ensureLogStreams } from "../shared/io/log-stream.ts";
import { closeNats, connectNats, type NatsConnection } from "../shared/io/nats.ts";
import { positiveInteger, wholeNumber } from "../shared/settings/settings.ts";
import { startNatsServer } from "../engines/nats-server.ts";
import { defineExperiment, type Print } from "./experiment.ts";
import { DocumentServices, type ServiceMemory } from "./systems/document-services.ts";

/**
 * The only author of a room. It appends to the log directly, fenced as by a room server, and holds the expected
 * document.
 */
const ANN = { client: "annannannannann1" as ClientId, user: "ann" as UserId };
const APPEND_MS_MAX = 30_000;

type DirectLog = { readonly streams: JetStreamClient; readonly subjects: Subjects; readonly partitions: number };

class RoomWriter {
  readonly room: RoomKey;
  readonly #doc = new Y.Doc();
  readonly #writing: DirectLog;
  #seq = 0;
  #streamSeq = 0;

  constructor(room: RoomKey, writing: DirectLog) {
    this.room = room;
    this.#writing = writing;
  }

  get seq(): number {
    return this.#seq;
  }

  get text(): string {
    return this.#doc.getText("text").toString();
  }

  /** Appends a word to the text. */
  async type(): Promise<void> {
    const { streams, subjects, partitions } = this.#writing;
    const before = Y.encodeStateVector(this.#doc);
    const text = this.#doc.getText("text");
    text.insert(text.length, `${this.#seq + 1} `);
    const edits = [
      { client: ANN.client, counter: this.#seq + 1, parentSeq: this.#seq as Seq, payload: Y.encodeStateAsUpdate(this.#doc, before) },
    ];
    const time = Date.now() as UnixMillis;
    const record = encodeEditsRecord({
      id: `bench.${this.room}.${this.#seq}`,
      time,
      users: new Map([[ANN.client, ANN.user]]),
      edits: { epoch: 1 as Epoch, firstSeq: (this.#seq + 1) as Seq, edits },
    });
    const fence = headers();
    fence.set("Nats-Expected-Last-Subject-Sequence", String(this.#streamSeq));
    this.#streamSeq = (
      await streams.publish(subjects.log(partitionOf(this.room, partitions), this.room), record, { headers: fence, timeout: APPEND_MS_MAX })
    ).seq;
    this.#seq += 1;
  }
}

type RoomsOptions = {
  readonly rooms: number;
  readonly editsPerRoom: number;
  readonly activeRooms: number;
  readonly services: number;
  readonly idleSeconds: number;
  readonly seed: number;
  readonly print: Print;
};
/** `many`: the service that has read all rooms. `few`: a service that has read only the active rooms. */
type RoomsOutcome = Disturbed & {
  readonly rooms: number;
  readonly edits: number;
  readonly readSeconds: number;
  readonly hash: string;
  readonly many: ServiceMemory;
  readonly few: ServiceMemory;
};

type Disturbed = { readonly kills: number; readonly stops: number; readonly starts: number; readonly writeSeconds: number };
/** The rooms of one environment and their document services. */
type House = { readonly writers: readonly RoomWriter[]; readonly services: DocumentServices };

const PARTITIONS = 4;
const WRITERS = 64;
const READERS = 32;
const FAULT_EVERY_MS = 1_500;
const READ_MS_MAX = 600_000;
/** Maximum time for the work that the kills left behind in all rooms. */
const LEFTOVERS_SECONDS_MAX = 900;
/**
 * Seconds in which only the active rooms are in memory, or all of `idleSeconds` if that is shorter. The NATS client
 * keeps the leftovers of an object read for five seconds.
 */
const QUIET_SECONDS = 10;
const SETTINGS = {
  snapshotEditsMax: "20",
  snapshotIntervalMsMin: "200",
  snapshotAgeMsMax: "2000",
  replayWindowMs: "2000",
  documentIdleMsMax: "2000",
  documentsLeaseMs: "600",
  historySegmentMsMin: "1000",
  logPartitions: String(PARTITIONS),
};
/** Without kills: less frequent work for the active rooms leaves capacity for the work that the kills left behind. */
const STEADY = { snapshotAgeMsMax: "10000", historySegmentMsMin: "10000" };

export async function benchRooms(options: RoomsOptions): Promise<RoomsOutcome> {
  const { print, rooms, editsPerRoom } = options;
  const dataDir = mkdtempSync(join(tmpdir(), "coroom-bench-rooms-"));
  const engine = await startNatsServer({ dataDir: join(dataDir, "nats") });
  const nats = await connectNats({ servers: engine.url, name: "bench" });
  const houseOf = (environment: string, count: number): Promise<House> =>
    build(nats, new DocumentServices({ natsUrl: engine.url, environment, dataDir, settings: SETTINGS }), environment, count);
  const [many, few] = [await houseOf("many", rooms), await houseOf("few", options.activeRooms)];
  try {
    const disturbed = await writeDisturbed(many, options);
    print(
      `${rooms * editsPerRoom} edits in ${rooms} rooms within ${disturbed.writeSeconds.toFixed(1)} s; ${disturbed.kills} services killed, ${disturbed.stops} stopped, ${disturbed.starts} started`,
    );
    const readStart = performance.now();
    await readAll(many);
    const readSeconds = (performance.now() - readStart) / 1000;
    print(`every document read back within ${readSeconds.toFixed(1)} s equals its writer's text`);
    await many.services.stopAll();
    await write(few.writers, editsPerRoom);
    const weights = await measureMemory(many, few, options);
    const hash = createHash("sha256")
      .update(many.writers.map(({ room, text }) => `${room} ${text}`).join("\n"))
      .digest("hex")
      .slice(0, 12);
    return { ...disturbed, ...weights, rooms, edits: rooms * editsPerRoom, readSeconds, hash };
  } finally {
    await Promise.all([many, few].map(({ services }) => services.stopAll()));
    await closeNats(nats);
    await engine.stop();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

async function build(nats: NatsConnection, services: DocumentServices, environment: string, rooms: number): Promise<House> {
  const subjects = subjectsOf(environment);
  await ensureLogStreams(nats, subjects, { partitions: PARTITIONS, replicas: 1 });
  const writing = { streams: jetstream(nats), subjects, partitions: PARTITIONS };
  return { services, writers: Array.from({ length: rooms }, (_, index) => new RoomWriter(`acme.room${index}` as RoomKey, writing)) };
}

async function writeDisturbed({ writers, services }: House, options: RoomsOptions): Promise<Disturbed> {
  const prng = new Prng(options.seed);
  for (let count = 0; count < options.services; count++) await services.start();
  const disturbances = disturb(services, options.services, prng);
  const started = performance.now();
  await write(writers, options.editsPerRoom, prng).finally(() => disturbances.stop());
  return { ...(await disturbances.stop()), starts: services.started, writeSeconds: (performance.now() - started) / 1000 };
}

/** Writes this many edits into each room, in random order. */
async function write(writers: readonly RoomWriter[], editsPerRoom: number, prng: Prng = new Prng(1)): Promise<void> {
  const left = writers.map(() => editsPerRoom);
  const open = writers.map((_, index) => index);
  await Promise.all(
    Array.from({ length: WRITERS }, async () => {
      while (open.length > 0) {
        const at = prng.below(open.length);
        const room = open[at]!;
        open[at] = open.at(-1)!;
        open.pop(); // No other loop writes in this room meanwhile.
        await writers[room]!.type();
        if (--left[room]! > 0) open.push(room);
      }
    }),
  );
}

/** Starts, stops and kills services until `stop`. */
function disturb(services: DocumentServices, meant: number, prng: Prng): { stop(): Promise<{ kills: number; stops: number }> } {
  let [kills, stops, isOver] = [0, 0, false];
  const disturbing = (async () => {
    while (!isOver) {
      await sleep(prng.below(FAULT_EVERY_MS));
      const fate = prng.below(4);
      if (fate === 0 && services.running <= meant + 1) await services.start();
      else if (fate === 1 && services.running > 1) {
        await services.end(prng.below(8), "SIGTERM");
        stops += 1;
      } else if (services.running > 0) {
        await services.end(prng.below(8), "SIGKILL");
        kills += 1;
        await services.start();
      }
    }
  })();
  return {
    stop: async () => {
      isOver = true;
      await disturbing;
      return { kills, stops };
    },
  };
}

/** One service of each house reads all its rooms. Then the same number of rooms is edited in both, and no others. */
async function measureMemory(
  many: House,
  few: House,
  { activeRooms, idleSeconds, print }: RoomsOptions,
): Promise<{ many: ServiceMemory; few: ServiceMemory }> {
  const [ofMany, ofFew] = [await many.services.start(STEADY), await few.services.start(STEADY)];
  await Promise.all([readAll(many), readAll(few)]);
  const shown = ({ rooms, live, resident }: ServiceMemory): string =>
    `${rooms} rooms in memory, ${megabytes(live)} live, ${megabytes(resident)} resident`;
  print(`a service that has just read all ${many.writers.length} rooms: ${shown(await ofMany.measureMemory())}`);
  const active = [...many.writers.slice(0, activeRooms), ...few.writers];
  const quietSecondsMin = Math.min(QUIET_SECONDS, idleSeconds);
  let [second, quietSeconds] = [0, 0];
  for (; second < idleSeconds || (quietSeconds < quietSecondsMin && second < LEFTOVERS_SECONDS_MAX); second++) {
    await Promise.all(active.map((writer) => writer.type()));
    await sleep(1_000);
    quietSeconds = (await ofMany.rooms()) > activeRooms ? 0 : quietSeconds + 1;
  }
  const weights = { many: await ofMany.measureMemory(), few: await ofFew.measureMemory() };
  print(
    `after ${second} s with ${activeRooms} of them edited every second: ${shown(weights.many)}; a service with only those ${activeRooms}: ${shown(weights.few)}`,
  );
  print(
    `ratio: ${(weights.many.live / weights.few.live).toFixed(2)} live, ${(weights.many.resident / weights.few.resident).toFixed(2)} resident`,
  );
  await Promise.all([many, few].map(({ writers, services }) => readAll({ writers: writers.slice(0, activeRooms * 2), services })));
  return weights;
}

function megabytes(bytes: number): string {
  return `${(bytes / 1024 ** 2).toFixed(0)} MB`;
}

/** Waits until each document is served as its writer has it. */
async function readAll({ writers, services }: House): Promise<void> {
  const deadline = performance.now() + READ_MS_MAX;
  const waiting = [...writers];
  await Promise.all(
    Array.from({ length: READERS }, async () => {
      for (let writer = waiting.pop(); writer !== undefined; writer = waiting.pop()) {
        while (!(await isServed(writer, services))) {
          if (performance.now() > deadline) throw new Error(`${writer.room} is not served at ${writer.seq}`);
          await sleep(50);
        }
      }
    }),
  );
}

async function isServed({ room, seq, text }: RoomWriter, services: DocumentServices): Promise<boolean> {
  const served = await services.snapshot(room);
  if (served?.seq !== seq) return false;
  const doc = new Y.Doc();
  Y.applyUpdate(doc, served.state);
  if (doc.getText("text").toString() !== text) throw new Error(`${room} is served at ${seq} with a text that differs from its writer's`);
  return true;
}

export const rooms = defineExperiment({
  name: "rooms",
  summary: "many rooms while document services are killed, then their memory; 1.5 GB; five to fifteen minutes",
  settings: {
    rooms: { parse: positiveInteger, fallback: 10_000, meaning: "rooms" },
    edits: { parse: positiveInteger, fallback: 10, meaning: "edits of each room" },
    active: { parse: positiveInteger, fallback: 100, meaning: "rooms with edits while memory is measured" },
    services: { parse: positiveInteger, fallback: 3, meaning: "document services" },
    idle: { parse: wholeNumber, fallback: 30, meaning: "seconds in which only the active rooms have edits" },
    seed: { parse: positiveInteger, fallback: 1, meaning: "seed of the kills, stops and starts" },
  },
  run: async (options, print) => {
    const { hash } = await benchRooms({
      rooms: options.rooms,
      editsPerRoom: options.edits,
      activeRooms: options.active,
      services: options.services,
      idleSeconds: options.idle,
      seed: options.seed,
      print,
    });
    print(`documents ${hash}`);
  },
});
