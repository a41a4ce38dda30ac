/**
 * The load of the presence scenarios: one room's participants, each on a socket of its own. A state's time of sending
 * travels in it, so that its age is known wherever it arrives; of the participants one in some is an observer who
 * reads every state, the others count frames and bytes. A frame that many get is decoded once.
 */

import { setTimeout as sleep } from "node:timers/promises";

import type { ClientId, Seq } from "../../shared/ids.ts";
import { START } from "../../shared/ids.ts";
import { decodeFrame, encodeFrame } from "../../shared/wire/codec.ts";
import { type ClientFrame, type Frame, FrameType, PROTOCOL_VERSION } from "../../shared/wire/frames.ts";
import { decodePoint, encodePoint } from "../../shared/wire/positions.ts";
import { CURSOR, type PresenceNews } from "../../shared/wire/presence.ts";
import type { ClientKey, RoomId } from "../../shared/ids.ts";
import type { Seat } from "./enter.ts";
import { keystroke } from "./keystroke.ts";
import { Latencies, type LatencyPairs } from "./latencies.ts";
import { type LoadSocket, openSocket } from "./web-socket.ts";
import { serveCalls } from "./worker.ts";

export type PresenceLoad = typeof functions;
/** Movers and editors are the first participants. */
export type Motion = { readonly ms: number; readonly movers: number; readonly movesPerSecond: number; readonly editors: number; readonly editsPerSecond: number };
export type Moved = {
  readonly presence: LatencyPairs;
  readonly edits: LatencyPairs;
  readonly framesEachSecond: number;
  readonly bytesEachSecond: number;
  /** The longest that any participant got no presence. */
  readonly longestSilenceMs: number;
  readonly cpuSeconds: number;
};
export type Probed = { readonly pairs: LatencyPairs; readonly missed: number };

const OBSERVER_IN = 20;
const OPENING_MAX = 128;
const ROSTER_MS_MAX = 60_000;
const SETTLED_MS_MAX = 60_000;
const PROBE_MS_MAX = 15_000;
/** Frames that others are about to get as well. */
const DECODED_MAX = 16;
const STATE_FIELD = "state";
/** A state's time is told in tenths of a millisecond, as a coordinate. */
const TICKS_PER_MS = 10;

let room: Participant[] = [];
let measuring = false;
let presence = new Latencies();
let edits = new Latencies();
/** By client, by counter. */
const sentAt = new Map<ClientId, number[]>();
const decoded: { readonly bytes: Buffer; readonly frame: Frame }[] = [];

const functions = {
  /** Answers how long it took until all had been told of all. */
  open: async (seats: readonly Seat[]): Promise<{ rosterMs: number }> => {
    const started = performance.now();
    room = seats.map((seat, index) => new Participant(seat, index));
    let next = 0;
    await Promise.all(
      Array.from({ length: OPENING_MAX }, async () => {
        while (next < room.length) await room[next++]!.open();
      }),
    );
    await until("all know of all", () => room.every(({ roster }) => roster === room.length), ROSTER_MS_MAX);
    return { rosterMs: performance.now() - started };
  },
  move: async ({ ms, movers, movesPerSecond, editors, editsPerSecond }: Motion): Promise<Moved> => {
    [presence, edits] = [new Latencies(), new Latencies()];
    for (const participant of room) participant.forget();
    const before = process.cpuUsage();
    measuring = true;
    await Promise.all([
      paced(movers * movesPerSecond, ms, (turn) => room[turn % movers]!.point()),
      paced(editors * editsPerSecond, ms, (turn) => room[turn % editors]!.edit()),
    ]);
    measuring = false;
    const cpu = process.cpuUsage(before);
    const silences = movers === 0 ? [0] : room.map((participant) => participant.longestSilence());
    await settled();
    return {
      presence: presence.toPairs(),
      edits: edits.toPairs(),
      framesEachSecond: sum(room.map(({ frames }) => frames)) / room.length / (ms / 1000),
      bytesEachSecond: sum(room.map(({ bytes }) => bytes)) / room.length / (ms / 1000),
      longestSilenceMs: Math.max(...silences),
      cpuSeconds: (cpu.user + cpu.system) / 1e6,
    };
  },
  /** Everybody shows a large state, then ticks of one edit and everybody's presence, then edits one by one. */
  burst: async ({ ticks, probes }: { ticks: number; probes: number }): Promise<Probed> => {
    for (const participant of room) participant.show(0);
    await sleep(500);
    for (let tick = 1; tick <= ticks; tick++) {
      room[0]!.edit();
      for (const participant of room) participant.show(tick);
      await sleep(20);
    }
    await sleep(1000);
    const [pairs, missed] = [new Latencies(), { count: 0 }];
    for (let probe = 0; probe < probes; probe++) await probeOnce(pairs, missed);
    await settled();
    return { pairs: pairs.toPairs(), missed: missed.count };
  },
  /** Everybody's presence once a second, and meanwhile an edit every second. */
  steady: async ({ seconds }: { seconds: number }): Promise<Probed> => {
    const [pairs, missed] = [new Latencies(), { count: 0 }];
    const probing: Promise<void>[] = [];
    await Promise.all([
      paced(room.length, seconds * 1000, (turn) => room[turn % room.length]!.show(turn)),
      paced(1, seconds * 1000, () => void probing.push(probeOnce(pairs, missed))),
    ]);
    await Promise.all(probing);
    return { pairs: pairs.toPairs(), missed: missed.count };
  },
  close: async (): Promise<void> => {
    for (const participant of room) participant.close();
    room = [];
    sentAt.clear();
  },
};

class Participant {
  readonly #seat: Seat;
  readonly #index: number;
  #socket: LoadSocket | undefined;
  #channel = 0;
  #client: ClientId | undefined;
  #known = new Set<number>();
  #rosterDone = false;
  #lastFrameAt = 0;
  #longestSilence = 0;
  seq = 0;
  sent = 0;
  frames = 0;
  bytes = 0;

  constructor(seat: Seat, index: number) {
    this.#seat = seat;
    this.#index = index;
  }

  get roster(): number {
    return this.#rosterDone ? room.length : this.#known.size;
  }

  async open(): Promise<void> {
    this.#socket = await openSocket(new URL(this.#seat.gateway), {
      receiveFrame: (bytes) => this.#receiveFrame(bytes),
      receiveEnd: (reason) => {
        throw new Error(`${this.#seat.clientKey}: ${reason}`);
      },
    });
    this.#say({ type: "hello", version: PROTOCOL_VERSION, token: this.#seat.token, agent: "bench" });
    this.#say({ type: "join", request: 1, room: this.#seat.room as RoomId, clientKey: this.#seat.clientKey as ClientKey, position: START });
  }

  forget(): void {
    [this.frames, this.bytes, this.#longestSilence, this.#lastFrameAt] = [0, 0, 0, performance.now()];
  }

  longestSilence(): number {
    return Math.max(this.#longestSilence, performance.now() - this.#lastFrameAt);
  }

  point(): void {
    const value = encodePoint({ x: Math.round(performance.now() * TICKS_PER_MS), y: this.#index });
    this.#say({ type: "presence", channel: this.#channel, fields: [{ name: CURSOR, value }] });
  }

  /** 288 bytes of JSON, as an editor's awareness may have them. */
  show(turn: number): void {
    const text = JSON.stringify({ user: this.#seat.clientKey, color: "#30bced", turn, pad: "" });
    const value = new TextEncoder().encode(text.replace('"pad":""', `"pad":"${"x".repeat(Math.max(0, 288 - text.length))}"`));
    this.#say({ type: "presence", channel: this.#channel, fields: [{ name: STATE_FIELD, value }] });
  }

  /** Its counter. */
  edit(): number {
    this.sent += 1;
    sentAt.get(this.#client!)!.push(performance.now());
    this.#say({ type: "edit", channel: this.#channel, counter: this.sent, ackedThrough: 0, parentSeq: this.seq as Seq, payload: keystroke(this.#index + 1, this.sent) });
    return this.sent;
  }

  close(): void {
    this.#socket?.close();
  }

  #say(frame: ClientFrame): void {
    this.#socket!.send(encodeFrame(frame));
  }

  #receiveFrame(bytes: Uint8Array): void {
    const isPresence = bytes[0] === FrameType["presence-news"];
    if (isPresence && measuring) this.#countFrame(bytes.byteLength);
    if (isPresence && this.#rosterDone && this.#index % OBSERVER_IN !== 0) return;
    const frame = decodeOnce(bytes);
    switch (frame.type) {
      case "joined":
        this.#channel = frame.channel;
        this.#client = frame.client;
        if (!sentAt.has(frame.client)) sentAt.set(frame.client, []);
        return;
      case "presence-news":
        return this.#receiveNews(frame.news);
      case "committed":
        return this.#receiveEdits(frame.edits.firstSeq, frame.edits.edits);
      case "ack":
        return this.#receiveEdits(frame.seq, Array.from({ length: frame.count }, (_, index) => ({ client: this.#client!, counter: frame.counter + index })));
      case "join-refused":
      case "nack":
      case "error":
      case "resync-required":
        throw new Error(`${this.#seat.clientKey}: ${JSON.stringify(frame)}`);
    }
  }

  #countFrame(bytes: number): void {
    const now = performance.now();
    this.frames += 1;
    this.bytes += bytes;
    this.#longestSilence = Math.max(this.#longestSilence, now - this.#lastFrameAt);
    this.#lastFrameAt = now;
  }

  #receiveNews({ whole, present, gone, states }: PresenceNews): void {
    if (!this.#rosterDone) {
      if (whole) this.#known.clear();
      for (const { number } of present) this.#known.add(number);
      for (const number of gone) this.#known.delete(number);
      if (this.#known.size >= room.length) {
        this.#rosterDone = true;
        this.#known = new Set();
      }
    }
    if (!measuring || whole || this.#index % OBSERVER_IN !== 0) return;
    const now = performance.now() * TICKS_PER_MS;
    for (const { fields } of states) for (const { name, value } of fields) if (name === CURSOR) presence.record((now - decodePoint(value)!.x) / TICKS_PER_MS);
  }

  #receiveEdits(firstSeq: Seq, given: readonly { client: ClientId; counter: number }[]): void {
    if (firstSeq !== this.seq + 1) throw new Error(`${this.#seat.clientKey}: seq ${firstSeq} after ${this.seq}`);
    this.seq += given.length;
    const now = performance.now();
    for (const { client, counter } of given) {
      if (client !== this.#client) edits.record(now - sentAt.get(client)![counter - 1]!);
      seen?.(client, counter, now);
    }
  }
}

/** Told of every receipt while an edit is probed. */
let seen: ((client: ClientId, counter: number, now: number) => void) | undefined;
const probes = new Map<number, { at: number; left: number; pairs: Latencies; done: () => void }>();

/** One edit of the first participant, until all have it or it is too late. */
async function probeOnce(pairs: Latencies, missed: { count: number }): Promise<void> {
  const counter = room[0]!.edit();
  await new Promise<void>((resolve) => {
    const probe = { at: performance.now(), left: room.length, pairs, done: resolve };
    probes.set(counter, probe);
    seen ??= (_, seenCounter, now) => {
      const met = probes.get(seenCounter);
      if (met === undefined) return;
      met.pairs.record(now - met.at);
      met.left -= 1;
      if (met.left === 0) met.done();
    };
    setTimeout(resolve, PROBE_MS_MAX).unref();
  });
  missed.count += probes.get(counter)!.left;
  probes.delete(counter);
}

function decodeOnce(bytes: Uint8Array): Frame {
  const known = decoded.findLast((one) => one.bytes.equals(bytes));
  if (known !== undefined) return known.frame;
  const copy = Buffer.from(bytes);
  const frame = decodeFrame(copy);
  if (frame === undefined || frame.type === "unknown") throw new Error(`a frame that does not decode: ${bytes[0]}`);
  decoded.push({ bytes: copy, frame });
  if (decoded.length > DECODED_MAX) decoded.shift();
  return frame;
}

/** `perSecond` evenly over the time; what is late is made up for at once. */
async function paced(perSecond: number, ms: number, run: (turn: number) => void): Promise<void> {
  const started = performance.now();
  const total = Math.round((perSecond * ms) / 1000);
  for (let turn = 0; turn < total; turn++) {
    const waitMs = started + (turn * 1000) / perSecond - performance.now();
    if (waitMs > 0) await sleep(waitMs);
    run(turn);
  }
  const leftMs = started + ms - performance.now();
  if (leftMs > 0) await sleep(leftMs);
}

/** Everybody has every edit: none is lost under presence. */
function settled(): Promise<void> {
  const sent = sum(room.map((participant) => participant.sent));
  return until("everybody has every edit", () => room.every(({ seq }) => seq === sent), SETTLED_MS_MAX);
}

async function until(what: string, isTrue: () => boolean, msMax: number): Promise<void> {
  const deadline = performance.now() + msMax;
  while (!isTrue()) {
    if (performance.now() > deadline) throw new Error(`did not come true within ${msMax} ms: ${what}`);
    await sleep(5);
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

serveCalls(functions);
