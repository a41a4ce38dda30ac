/**
 * The load of the comparison with other servers. Members of rooms edit and move cursors on a schedule that does not
 * depend on a server's speed. Every member must receive every edit of its room once, each writer's in order. A latency
 * runs from the actual send, so that a late load does not make a server look slower.
 */

import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";

import type { Point } from "../../shared/wire/positions.ts";
import { keystroke, type Keystrokes } from "../../cli/bench/keystroke.ts";
import { Latencies, type LatencyPairs } from "../../cli/bench/latencies.ts";
import type { Seat } from "./enter.ts";
import { typingSchedule } from "./load.ts";
import { openAll } from "./open-all.ts";
import { DIALECTS, type Dialect, type DialectName, type PeerMessage } from "./peer-dialects.ts";
import { ReceivedEdits } from "./received-edits.ts";
import { until } from "./until.ts";
import { type LoadSocket, openSocket } from "./web-socket.ts";
import { serveCalls } from "./worker.ts";

export type PeersLoad = typeof functions;
export type PeersMotion = {
  readonly ms: number;
  /** Members of each room that edit, and edits per second of each. */
  readonly writers: number;
  readonly editsPerSecond: number;
  /** Of every member. */
  readonly cursorsPerSecond: number;
  readonly seed: number;
};
export type PeersFigures = {
  /** From the send until another member has it. */
  readonly edits: LatencyPairs;
  readonly cursors: LatencyPairs;
  readonly editsSent: number;
  /** By all members, without the headers of WebSocket and TCP. */
  readonly bytesReceived: number;
  readonly seconds: number;
  readonly loadCpuSeconds: number;
};

/** A writer with this many unacknowledged edits leaves the next one out: servers refuse more. */
const UNACKED_MAX = 400;
const JOINED_MS_MAX = 60_000;
const SETTLED_MS_MAX = 60_000;
const PING_MS = 20_000;
/** Keystrokes and cursors that are sent before the load reads again. */
const SENT_AT_ONCE_MAX = 64;
/** Decoded messages that are kept because other members of the room will receive them. */
const DECODED_MAX = 8;
const TICKS_PER_MS = 10;

let rooms: PeerRoom[] = [];
let edits = new Latencies();
let cursors = new Latencies();
let turn = 0;
let bytesReceived = 0;

class PeerRoom {
  readonly dialect: Dialect;
  readonly members: PeerMember[];
  readonly #decoded: { readonly bytes: Buffer; readonly message: PeerMessage }[] = [];

  constructor(dialect: Dialect, seats: readonly Seat[]) {
    this.dialect = dialect;
    this.members = seats.map((seat, index) => new PeerMember(this, seat, index));
  }

  get isSettled(): boolean {
    return this.members.every((member) => this.members.every(({ index, sent }) => member.receivedOf(index) === sent));
  }

  /** Decodes a message once if several members receive it, because the load shares the machine with the servers. */
  decode(bytes: Uint8Array): PeerMessage {
    const known = this.#decoded.findLast((one) => one.bytes.equals(bytes));
    if (known !== undefined) return known.message;
    const copy = Buffer.from(bytes);
    const message = this.dialect.read(copy);
    this.#decoded.push({ bytes: copy, message });
    if (this.#decoded.length > DECODED_MAX) this.#decoded.shift();
    return message;
  }
}

class PeerMember {
  readonly #room: PeerRoom;
  readonly #seat: Seat;
  readonly index: number;
  readonly sentAt: number[] = [];
  readonly #received: ReceivedEdits;
  #socket: LoadSocket | undefined;
  channel = 0;
  joined = false;
  /** The server may still be sending. */
  #isClosed = false;

  constructor(room: PeerRoom, seat: Seat, index: number) {
    this.#room = room;
    this.#seat = seat;
    this.index = index;
    this.#received = new ReceivedEdits(`member ${index} of ${seat.room}`);
  }

  get room(): string {
    return this.#seat.room;
  }

  get sent(): number {
    return this.sentAt.length;
  }

  get acked(): number {
    return this.receivedOf(this.index);
  }

  get seq(): number {
    return this.#received.seq;
  }

  receivedOf(writer: number): number {
    return this.#received.counterOf(writer);
  }

  async open(): Promise<void> {
    const { dialect } = this.#room;
    this.#socket = await openSocket(dialect.addressOf(this.#seat), {
      receiveFrame: (bytes) => {
        bytesReceived += bytes.byteLength;
        if (!this.#isClosed) this.#receive(this.#room.decode(bytes));
      },
      receiveEnd: (reason) => {
        throw new Error(`member ${this.index} of ${this.room}: ${reason}`);
      },
    });
    for (const message of dialect.greet(this.#seat)) this.#socket.send(message);
    await until(`member ${this.index} of ${this.room} has joined`, () => this.joined, JOINED_MS_MAX);
  }

  edit(): void {
    if (this.sent - this.acked >= UNACKED_MAX) return;
    const counter = this.sentAt.push(performance.now());
    this.#socket!.send(this.#room.dialect.edit(this, counter, keystroke(this.index + 1, counter)));
  }

  point(): void {
    const cursor: Point = { x: Math.round(performance.now() * TICKS_PER_MS), y: this.index };
    this.#socket!.send(this.#room.dialect.cursor(this, cursor, ++turn));
  }

  ping(): void {
    const ping = this.#room.dialect.ping();
    if (ping !== undefined && this.joined) this.#socket!.send(ping);
  }

  close(): void {
    this.#isClosed = true;
    this.#socket?.close();
  }

  #receive(message: PeerMessage): void {
    switch (message.kind) {
      case "joined":
        this.channel = message.channel;
        this.joined = true;
        return;
      case "edits":
        this.#received.receive(message.firstSeq, message.edits);
        return this.#measure(message.edits);
      case "acked":
        this.#received.receiveAck(message.firstSeq, { ...message, writer: this.index + 1 });
        return;
      case "cursors": {
        const now = performance.now() * TICKS_PER_MS;
        for (const { x, y } of message.cursors) if (y !== this.index) cursors.record((now - x) / TICKS_PER_MS);
      }
    }
  }

  #measure(received: readonly Keystrokes[]): void {
    const now = performance.now();
    for (const { writer, counter, count } of received) {
      if (writer - 1 === this.index) continue;
      const { sentAt } = this.#room.members[writer - 1]!;
      for (let index = counter - 1; index < counter - 1 + count; index++) edits.record(now - sentAt[index]!);
    }
  }
}

const functions = {
  /** `arrivals`: the room of each member in turn, who enters when the one before is in. Absent: many enter at once. */
  open: async ({ name, seats, arrivals }: { name: DialectName; seats: readonly (readonly Seat[])[]; arrivals?: Iterable<number> }) => {
    rooms = seats.map((ofRoom) => new PeerRoom(DIALECTS[name], ofRoom));
    if (arrivals === undefined) return openAll(members());
    const waiting = rooms.map((room) => room.members.values());
    for (const room of arrivals) await waiting[room]!.next().value!.open();
  },
  drive: async ({ ms, writers, editsPerSecond, cursorsPerSecond, seed }: PeersMotion): Promise<PeersFigures> => {
    [edits, cursors] = [new Latencies(), new Latencies()];
    const sentBefore = sentByAll();
    bytesReceived = 0;
    const cpuBefore = process.cpuUsage();
    const writing = rooms.flatMap((room) => room.members.slice(0, writers));
    await Promise.all([
      follow(typingSchedule(writing, { editsPerSecond, durationMs: ms, seed }), ms, (member) => member.edit()),
      cursorsPerSecond > 0 &&
        follow(typingSchedule(members(), { editsPerSecond: cursorsPerSecond, durationMs: ms, seed }), ms, (member) => member.point()),
    ]);
    const cpu = process.cpuUsage(cpuBefore);
    await until("every member has every edit", () => rooms.every(({ isSettled }) => isSettled), SETTLED_MS_MAX);
    return {
      edits: edits.toPairs(),
      cursors: cursors.toPairs(),
      editsSent: sentByAll() - sentBefore,
      bytesReceived,
      seconds: ms / 1000,
      loadCpuSeconds: (cpu.user + cpu.system) / 1e6,
    };
  },
  close: async (): Promise<void> => {
    for (const member of members()) member.close();
    rooms = [];
  },
};

function members(): PeerMember[] {
  return rooms.flatMap((room) => room.members);
}

function sentByAll(): number {
  return members().reduce((sum, { sent }) => sum + sent, 0);
}

async function follow(
  schedule: readonly { readonly dueMs: number; readonly writer: PeerMember }[],
  ms: number,
  act: (member: PeerMember) => void,
): Promise<void> {
  const start = performance.now();
  let atOnce = 0;
  for (const { dueMs, writer } of schedule) {
    const waitMs = start + dueMs - performance.now();
    if (waitMs > 0) await sleep(waitMs);
    else if (++atOnce % SENT_AT_ONCE_MAX === 0) await nextTurn();
    act(writer);
  }
  const leftMs = start + ms - performance.now();
  if (leftMs > 0) await sleep(leftMs);
}

setInterval(() => members().forEach((member) => member.ping()), PING_MS).unref();
serveCalls(functions);
