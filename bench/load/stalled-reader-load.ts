/**
 * The load of the scenario stalled-reader: a busy room in which one reader stops reading for a while. Everybody is
 * followed seq by seq; the reader, closed by the server, comes back with the position it holds.
 */

import { setTimeout as sleep } from "node:timers/promises";

import { type ClientId, type Epoch, type Position, type Seq, START } from "../../shared/ids.ts";
import { enter, say, type Seat, unexpected } from "./enter.ts";
import { keystroke } from "./keystroke.ts";
import { Latencies, type LatencyPairs } from "./latencies.ts";
import { until } from "./paced.ts";
import type { LoadSocket } from "./web-socket.ts";
import { serveCalls } from "./worker.ts";

export type BusyRoom = {
  readonly writers: readonly Seat[];
  readonly readers: readonly Seat[];
  readonly editsPerSecond: number;
  readonly editLetters: number;
};
export type Stretch = { readonly others: LatencyPairs; readonly edits: number };
export type StalledReaderLoad = typeof functions;

const SETTLED_MS_MAX = 60_000;

let members: Member[] = [];
let room: BusyRoom;
let latencies = new Latencies();
/** By client and counter. */
const sentAt = new Map<ClientId, number[]>();

const functions = {
  open: async (given: BusyRoom): Promise<void> => {
    room = given;
    for (const seat of [...given.writers, ...given.readers]) {
      const member = new Member(seat, members.length);
      members.push(member);
      await member.enter();
    }
  },
  /** Everybody but the last reader is measured, until they have all that was sent; that one reads nothing meanwhile where it is `stalled`. */
  run: async ({ ms, stalled }: { ms: number; stalled: boolean }): Promise<Stretch> => {
    const reader = members.at(-1)!;
    latencies = new Latencies();
    if (stalled) reader.pause();
    const edits = await write(ms);
    await settled(members.slice(0, -1));
    if (stalled) reader.resume();
    return { others: latencies.toPairs(), edits };
  },
  /** Once everybody who can has everything: what became of the reader. */
  settle: async ({
    mayMiss,
  }: {
    mayMiss: boolean;
  }): Promise<{ closedWith: string | undefined; replayed: number; missed: number; comeBackMs: number }> => {
    const reader = members.at(-1)!;
    const sent = await settled(mayMiss ? members.slice(0, -1) : members);
    const { closedWith, replayed, comeBackMs } = reader;
    return { closedWith, replayed, missed: mayMiss ? sent - reader.got : 0, comeBackMs };
  },
  close: async (): Promise<void> => {
    for (const member of members) member.leave();
    members = [];
  },
};

class Member {
  readonly seat: Seat;
  readonly #index: number;
  position: Position = START;
  got = 0;
  closedWith: string | undefined;
  /** Got between coming back and being level with the room again. */
  replayed = 0;
  comeBackMs = Number.NaN;
  channel = 0;
  sent = 0;
  #socket: LoadSocket | undefined;
  #client: ClientId | undefined;
  #paused = false;
  #back: { readonly at: number; head: number } | undefined;

  constructor(seat: Seat, index: number) {
    this.seat = seat;
    this.#index = index;
  }

  enter(): Promise<void> {
    return new Promise((resolve, reject) => {
      const listener = {
        receive: (frame: Parameters<Parameters<typeof enter>[2]["receive"]>[0]) => {
          switch (frame.type) {
            case "joined":
              this.channel = frame.channel;
              this.#client = frame.client;
              if (!sentAt.has(frame.client)) sentAt.set(frame.client, []);
              if (this.#back !== undefined) this.#back.head = frame.head;
              return resolve();
            case "committed":
              return this.#receive(frame.edits.epoch, frame.edits.firstSeq, frame.edits.edits);
            case "ack":
              return this.#receive(
                frame.epoch,
                frame.seq,
                Array.from({ length: frame.count }, (_, index) => ({ client: this.#client!, counter: frame.counter + index })),
              );
            case "join-refused":
            case "resync-required":
            case "nack":
              if (this.#socket !== undefined) throw unexpected(this.seat, JSON.stringify(frame)); // Nobody waits for the promise any more.
              return reject(unexpected(this.seat, JSON.stringify(frame)));
          }
        },
        end: (reason: string) => this.#receiveEnd(reason),
      };
      enter(this.seat, this.position, listener).then((socket) => (this.#socket = socket), reject);
    });
  }

  write(): void {
    this.sent += 1;
    sentAt.get(this.#client!)!.push(performance.now());
    const payload = keystroke(this.#index + 1, this.sent, room.editLetters);
    say(this.#socket!, { type: "edit", channel: this.channel, counter: this.sent, ackedThrough: 0, parentSeq: this.position.seq, payload });
  }

  pause(): void {
    this.#paused = true;
    this.#socket!.pause();
  }

  resume(): void {
    this.#paused = false;
    this.#socket!.resume();
  }

  leave(): void {
    this.#socket?.close();
  }

  #receive(epoch: Epoch, firstSeq: Seq, edits: readonly { client: ClientId; counter: number }[]): void {
    const now = performance.now();
    const isReader = this === members.at(-1);
    const hole = firstSeq - this.position.seq - 1;
    if (hole !== 0 && !isReader) throw unexpected(this.seat, `seq ${firstSeq} after ${this.position.seq}`);
    if (hole < 0) throw unexpected(this.seat, `seq ${firstSeq} again after ${this.position.seq}`);
    this.position = { epoch, seq: (firstSeq + edits.length - 1) as Seq };
    this.got += edits.length;
    if (this.#back !== undefined) this.#receiveWhileBack(this.#back, edits.length, now);
    if (!isReader)
      for (const { client, counter } of edits) if (client !== this.#client) latencies.record(now - sentAt.get(client)![counter - 1]!);
  }

  #receiveWhileBack(back: { readonly at: number; readonly head: number }, edits: number, now: number): void {
    this.replayed += edits;
    if (this.position.seq < back.head) return;
    this.comeBackMs = now - back.at;
    this.#back = undefined;
  }

  #receiveEnd(reason: string): void {
    if (this !== members.at(-1)) throw unexpected(this.seat, reason);
    this.closedWith = reason;
    this.#back = { at: performance.now(), head: Number.POSITIVE_INFINITY };
    void this.enter();
    if (this.#paused) throw unexpected(this.seat, "heard of its end while it read nothing");
  }
}

/** Once these have all edits: how many those are. */
async function settled(waited: readonly Member[]): Promise<number> {
  const sent = [...sentAt.values()].reduce((sum, times) => sum + times.length, 0);
  await until(`all ${sent} edits came`, () => waited.every(({ position }) => position.seq >= sent), SETTLED_MS_MAX);
  return sent;
}

async function write(ms: number): Promise<number> {
  const writers = members.slice(0, room.writers.length);
  const started = performance.now();
  const total = Math.round((ms / 1000) * room.editsPerSecond);
  for (let edit = 0; edit < total; edit++) {
    const waitMs = started + (edit * 1000) / room.editsPerSecond - performance.now();
    if (waitMs > 0) await sleep(waitMs);
    writers[edit % writers.length]!.write();
  }
  return total;
}

serveCalls(functions);
