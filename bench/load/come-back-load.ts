/** The load of the scenario come-back: writes documents into rooms, and lets all clients return at once. */

import { setTimeout as sleep } from "node:timers/promises";
import * as Y from "yjs";

import { type Epoch, type Position, type Seq, START } from "../../shared/ids.ts";
import { TEXT } from "../../cli/bench/keystroke.ts";
import { Latencies, type LatencyPairs } from "../../cli/bench/latencies.ts";
import { enter, join, sendFrame, type Seat, unexpected } from "./enter.ts";
import { streamingGet, type ResponseHead } from "./streaming-get.ts";
import type { LoadSocket } from "./web-socket.ts";
import { serveCalls } from "./worker.ts";

/** Sockets that are opened at a time. A connection beyond the listen queue would wait one second. */
const OPENING_MAX = 256;
const MS_MAX = 120_000;
const RETRY_MS = 250;

/** By room. An absent room is at its start. */
type Positions = Readonly<Record<string, Position>>;

/** `positions`: positions that the clients hold. `missed`: edits since then; 0 means that the clients hold nothing. */
type ComeBackRequest = { readonly seats: readonly Seat[]; readonly positions: Positions; readonly missed: number };
export type ComeBackFigures = {
  readonly msToLast: number;
  readonly times: LatencyPairs;
  /** Bytes of frames and snapshots on the wire. */
  readonly bytes: number;
  readonly snapshots: number;
  /** By room: length of the text that one cold client received. */
  readonly textLengths: Readonly<Record<string, number>>;
};

export type ComeBackLoad = typeof functions;

const functions = {
  /** Writes from each room's position and returns the new positions. */
  write: async ({
    seats,
    positions,
    edits,
  }: {
    seats: readonly Seat[];
    positions: Positions;
    edits: readonly Uint8Array[];
  }): Promise<Positions> => {
    const after: Record<string, Position> = {};
    await inParallel(seats, async (seat) => void (after[seat.room] = await writeAll(seat, positions[seat.room] ?? START, edits)));
    return after;
  },
  /** Number of rooms that already redirect a new client to their snapshot. */
  cold: async (seats: readonly Seat[]): Promise<number> => {
    let cold = 0;
    await inParallel(seats, async (seat) => {
      if (await isCold(seat)) cold += 1;
    });
    return cold;
  },
  comeBack: async ({ seats, positions, missed }: ComeBackRequest): Promise<ComeBackFigures> => {
    const times = new Latencies();
    const readers = missed > 0 ? new Set<Seat>() : oneOfEachRoom(seats);
    const returners = seats.map((seat) => new Returner(seat, positions[seat.room] ?? START, { missed, keeps: readers.has(seat) }));
    const started = performance.now();
    await inParallel(returners, async (returner) => {
      await returner.start();
      void returner.synced.then(() => times.record(performance.now() - started));
    });
    await Promise.all(returners.map(({ synced }) => synced));
    const msToLast = performance.now() - started;
    for (const returner of returners) returner.leave();
    return {
      msToLast,
      times: times.toPairs(),
      bytes: returners.reduce((sum, { bytes }) => sum + bytes, 0),
      snapshots: returners.reduce((sum, { snapshots }) => sum + snapshots, 0),
      textLengths: Object.fromEntries(
        returners.filter(({ seat }) => readers.has(seat)).map((returner) => [returner.seat.room, returner.textLength()]),
      ),
    };
  },
};

/** The clients that keep and decode the document. Decoding for all clients would take longer than the delivery. */
function oneOfEachRoom(seats: readonly Seat[]): Set<Seat> {
  return new Set(new Map(seats.map((seat) => [seat.room, seat])).values());
}

/** A returning client. It is synced when it has joined and holds everything up to the head that JOINED named. */
class Returner {
  readonly seat: Seat;
  readonly synced: Promise<void>;
  bytes = 0;
  snapshots = 0;
  readonly #missed: number;
  readonly #keeps: boolean;
  readonly #payloads: Uint8Array[] = [];
  #position: Position;
  #head = Number.POSITIVE_INFINITY;
  #edits = 0;
  #socket: LoadSocket | undefined;
  #settle: { resolve: () => void; reject: (error: Error) => void } = { resolve: () => {}, reject: () => {} };

  /** `keeps`: the client keeps the received bytes and decodes them at the end. Other clients only count bytes. */
  constructor(seat: Seat, position: Position, { missed, keeps }: { missed: number; keeps: boolean }) {
    this.seat = seat;
    this.#position = position;
    this.#missed = missed;
    this.#keeps = keeps;
    this.synced = new Promise((resolve, reject) => (this.#settle = { resolve, reject }));
    setTimeout(() => this.#fail(`not synced within ${MS_MAX} ms`), MS_MAX).unref();
  }

  async start(): Promise<void> {
    this.#socket = await enter(this.seat, this.#position, {
      receive: (frame, bytes) => {
        this.bytes += bytes;
        switch (frame.type) {
          case "joined":
            this.#head = frame.head;
            return this.#check();
          case "committed":
            if (frame.edits.firstSeq !== this.#position.seq + 1)
              return this.#fail(`seq ${frame.edits.firstSeq} after ${this.#position.seq}`);
            this.#position = { epoch: frame.edits.epoch, seq: (frame.edits.firstSeq + frame.edits.edits.length - 1) as Seq };
            this.#edits += frame.edits.edits.length;
            if (this.#keeps) for (const { payload } of frame.edits.edits) this.#payloads.push(new Uint8Array(payload)); // A Buffer's slice() would be a view.
            return this.#check();
          case "resync-required":
            this.#head = Number.POSITIVE_INFINITY;
            return void this.#resync().catch((error: unknown) => this.#fail(String(error)));
          case "join-refused":
          case "error":
            return this.#fail(frame.message);
        }
      },
      end: (reason) => this.#fail(reason),
    });
  }

  leave(): void {
    this.#socket?.close();
  }

  textLength(): number {
    const doc = new Y.Doc();
    for (const payload of this.#payloads) Y.applyUpdate(doc, payload);
    return doc.getText(TEXT).length;
  }

  async #resync(): Promise<void> {
    const parts: Uint8Array[] = [];
    const receive = (bytes: Uint8Array): void => {
      this.bytes += bytes.byteLength;
      if (this.#keeps) parts.push(new Uint8Array(bytes)); // A Buffer's slice() would be a view.
    };
    let position = await fetchSnapshot(this.seat, receive);
    while (position === "unavailable") {
      await sleep(RETRY_MS);
      position = await fetchSnapshot(this.seat, receive);
    }
    this.snapshots += 1;
    if (this.#keeps) this.#payloads.splice(0, this.#payloads.length, Buffer.concat(parts));
    this.#position = position;
    join(this.#socket!, this.seat, position);
  }

  #check(): void {
    if (this.#position.seq < this.#head) return;
    if (this.#edits !== this.#missed && this.#missed > 0) return this.#fail(`${this.#edits} edits came where ${this.#missed} were missed`);
    this.#settle.resolve();
  }

  #fail(reason: string): void {
    this.#settle.reject(unexpected(this.seat, reason));
  }
}

/**
 * Uses a connection of its own, like a browser without an open one. `receive` borrows each part of the body for the
 * call.
 */
async function fetchSnapshot({ gateway, room, token }: Seat, receive: (bytes: Uint8Array) => void): Promise<Position | "unavailable"> {
  const url = new URL(`/v1/rooms/${encodeURIComponent(room)}/snapshot`, gateway.replace("ws:", "http:"));
  let head: ResponseHead | undefined;
  let refusal = "";
  await streamingGet(
    url,
    { authorization: `Bearer ${token}` },
    {
      receiveHead: (received) => (head = received),
      receiveBytes: (bytes) => (head?.status === 200 ? receive(bytes) : void (refusal += Buffer.from(bytes).toString())),
    },
  );
  const { status, headers } = head!;
  if (status === 503) return "unavailable"; // On a busy machine the document service's heartbeat may be late.
  if (status !== 200) throw new Error(`the snapshot of ${room}: HTTP ${status} ${refusal}`);
  return { epoch: Number(headers["x-coroom-epoch"]) as Epoch, seq: Number(headers["x-coroom-seq"]) as Seq };
}

async function writeAll(seat: Seat, position: Position, edits: readonly Uint8Array[]): Promise<Position> {
  return new Promise((resolve, reject) => {
    let acked = 0;
    const opened = enter(seat, position, {
      receive: (frame) => {
        if (frame.type === "joined") {
          edits.forEach(
            (payload, index) =>
              void opened.then((socket) =>
                sendFrame(socket, {
                  type: "edit",
                  channel: frame.channel,
                  counter: index + 1,
                  ackedThrough: 0,
                  parentSeq: 0 as Seq,
                  payload,
                }),
              ),
          );
        } else if (frame.type === "ack" || (frame.type === "committed" && acked < edits.length)) {
          const [epoch, last] =
            frame.type === "ack"
              ? [frame.epoch, frame.seq + frame.count - 1]
              : [frame.edits.epoch, frame.edits.firstSeq + frame.edits.edits.length - 1];
          acked += frame.type === "ack" ? frame.count : frame.edits.edits.length;
          if (acked < edits.length) return;
          void opened.then((socket) => socket.close());
          resolve({ epoch, seq: last as Seq });
        } else if (frame.type === "nack" || frame.type === "error") reject(unexpected(seat, JSON.stringify(frame)));
      },
      end: (reason) => reject(unexpected(seat, reason)),
    });
    opened.catch(reject);
  });
}

async function isCold(seat: Seat): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const opened = enter(seat, START, {
      receive: (frame) => {
        if (frame.type !== "resync-required" && frame.type !== "committed" && frame.type !== "join-refused") return;
        void opened.then((socket) => socket.close());
        resolve(frame.type === "resync-required");
      },
      end: (reason) => reject(unexpected(seat, reason)),
    });
    opened.catch(reject);
  });
}

async function inParallel<Item>(items: readonly Item[], run: (item: Item) => Promise<void>): Promise<void> {
  let next = 0;
  await Promise.all(
    Array.from({ length: OPENING_MAX }, async () => {
      while (next < items.length) await run(items[next++]!);
    }),
  );
}

serveCalls(functions);
