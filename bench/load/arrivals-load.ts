/**
 * The load of the scenario arrivals: writes one long document over HTTP, and lets many clients open it. A client joins,
 * is redirected to the snapshot, fetches it over HTTP and joins again from there. All bytes are compared on arrival
 * with those that other clients received under the same ETag, and each ETag's bytes are decoded once.
 */

import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { gunzipSync } from "node:zlib";
import * as Y from "yjs";

import { Prng } from "../../shared/collections/prng.ts";
import { type Epoch, type Position, type Seq, START } from "../../shared/ids.ts";
import type { Frame, UnknownFrame } from "../../shared/wire/frames.ts";
import { TEXT } from "../../cli/bench/keystroke.ts";
import { Latencies, type LatencyPairs } from "../../cli/bench/latencies.ts";
import { enter, join, type Seat, unexpected } from "./enter.ts";
import { FirstCopy } from "./first-copy.ts";
import { CutOff, streamingGet } from "./streaming-get.ts";
import { serveCalls } from "./worker.ts";

type LongDocumentRequest = { readonly seat: Seat; readonly bytes: number; readonly seed: number };
type ArrivalsRequest = { readonly seats: readonly Seat[]; readonly withinMs: number; readonly gzip: boolean; readonly typist: Seat };
type ArrivalsFigures = {
  /** From the first arrival until the last client has all bytes and is in the room. */
  readonly msToLast: number;
  /** CPU of the load itself in that time. */
  readonly cpuMs: number;
  /** From each client's own arrival. */
  readonly times: LatencyPairs;
  readonly bytes: number;
  /** Number of deliveries by ETag. Different bytes under one ETag void the run. */
  readonly sent: Readonly<Record<string, number>>;
  /** Requests repeated because their connection was cut off. */
  readonly askedAgain: number;
  /** Fewest letters of any delivered document. */
  readonly lettersMin: number;
  readonly editsMeanwhile: number;
};
export type ArrivalsLoad = typeof functions;

/** The server answered that the client must ask again. */
class NotReady extends Error {}

type Fetched = { readonly position: Position; readonly etag: string; readonly bytes: number; readonly askedAgain: number };
/** By ETag. */
type Copies = Map<string, FirstCopy>;

/** Words of one insertion, and insertions of one request. */
const PHRASE_WORDS = 16;
const PHRASES_PER_EDIT = 1_000;
/** Insertions are at most this many letters before the end: further back Yjs would walk through the whole text. */
const NEARBY = 20_000;
const TYPING_EVERY_MS = 500;
const MS_MAX = 300_000;
const CUT_OFF_MAX = 10;
/** Delay before a retry after 503 or 504, which a busy machine may answer. */
const RETRY_MS = 250;

const functions = {
  /** Returns the number of letters of the text, which the document service has read. */
  write: async ({ seat, bytes, seed }: LongDocumentRequest): Promise<number> => {
    const doc = new Y.Doc();
    const text = doc.getText(TEXT);
    const prng = new Prng(seed);
    const edits: Uint8Array[] = [];
    doc.on("update", (edit: Uint8Array) => void edits.push(edit));
    for (let made = 0; made < bytes; made += edits.at(-1)!.byteLength) {
      doc.transact(() => {
        for (let phrase = 0; phrase < PHRASES_PER_EDIT; phrase++) {
          const at = prng.chance(0.3) ? text.length - prng.below(Math.min(text.length, NEARBY) + 1) : text.length;
          text.insert(at, Array.from({ length: PHRASE_WORDS }, () => WORDS[prng.below(WORDS.length)]).join(" "));
        }
      });
    }
    let seq = 0;
    for (const edit of edits) seq = await post(seat, edit);
    await read(seat, seq);
    return text.length;
  },

  /** Whether a new client is already redirected to the snapshot. */
  isCold: async (seat: Seat): Promise<boolean> => {
    const arrival = new Arrival(seat);
    const { kind } = await arrival.join(START);
    arrival.leave();
    return kind === "resync";
  },

  arrive: async ({ seats, withinMs, gzip, typist }: ArrivalsRequest): Promise<ArrivalsFigures> => {
    const times = new Latencies();
    const copies: Copies = new Map();
    const typing = new Typing(typist);
    const started = performance.now();
    const cpuBefore = process.cpuUsage();
    const arrived = await Promise.all(
      seats.map(async (seat, index) => {
        await sleep((index * withinMs) / seats.length);
        const own = performance.now();
        const fetched = await arrive(seat, gzip, copies);
        times.record(performance.now() - own);
        return fetched;
      }),
    );
    const msToLast = performance.now() - started;
    const { user, system } = process.cpuUsage(cpuBefore);
    const editsMeanwhile = await typing.stop();
    const letters = [...copies.values()].map(({ bytes }) => lettersOf(gzip ? gunzipSync(bytes) : bytes));
    return {
      msToLast,
      cpuMs: (user + system) / 1000,
      times: times.toPairs(),
      bytes: arrived.reduce((sum, { bytes }) => sum + bytes, 0),
      sent: sentOf(arrived),
      askedAgain: arrived.reduce((sum, { askedAgain }) => sum + askedAgain, 0),
      lettersMin: Math.min(...letters),
      editsMeanwhile,
    };
  },
};

/** Types all the time, so that there is something to merge. */
class Typing {
  readonly #seat: Seat;
  readonly #typed: Promise<number>;
  #over = false;

  constructor(seat: Seat) {
    this.#seat = seat;
    this.#typed = this.#type();
  }

  stop(): Promise<number> {
    this.#over = true;
    return this.#typed;
  }

  async #type(): Promise<number> {
    let typed = 0;
    for (; !this.#over; typed++) {
      const doc = new Y.Doc();
      doc.getText(TEXT).insert(0, "typed meanwhile ");
      await post(this.#seat, Y.encodeStateAsUpdate(doc));
      await sleep(TYPING_EVERY_MS);
    }
    return typed;
  }
}

/** One arriving client. */
class Arrival {
  readonly #seat: Seat;
  #socket: Awaited<ReturnType<typeof enter>> | undefined;
  #seq = 0;
  #head = Number.POSITIVE_INFINITY;
  #answer: (answer: { kind: "level" | "resync" }) => void = () => {};
  #fail: (error: Error) => void = () => {};

  constructor(seat: Seat) {
    this.#seat = seat;
  }

  async join(position: Position): Promise<{ kind: "level" | "resync" }> {
    const answered = new Promise<{ kind: "level" | "resync" }>((resolve, reject) => ([this.#answer, this.#fail] = [resolve, reject]));
    setTimeout(() => this.#fail(unexpected(this.#seat, `not in within ${MS_MAX} ms`)), MS_MAX).unref();
    this.#seq = position.seq;
    this.#head = Number.POSITIVE_INFINITY;
    if (this.#socket !== undefined) join(this.#socket, this.#seat, position);
    else
      this.#socket = await enter(this.#seat, position, {
        receive: (frame) => this.#receive(frame),
        end: (reason) => this.#fail(unexpected(this.#seat, reason)),
      });
    return answered;
  }

  /** JOINED names the head. Either the missing edits follow, or a frame that redirects to the snapshot. */
  #receive(frame: Frame | UnknownFrame): void {
    if (frame.type === "joined") this.#head = frame.head;
    else if (frame.type === "committed") this.#seq = frame.edits.firstSeq + frame.edits.edits.length - 1;
    else if (frame.type === "resync-required") return this.#answer({ kind: "resync" });
    else if (frame.type === "join-refused" || frame.type === "error") return this.#fail(unexpected(this.#seat, frame.message));
    if (this.#seq >= this.#head) this.#answer({ kind: "level" });
  }

  leave(): void {
    this.#socket?.close();
  }
}

async function arrive(seat: Seat, gzip: boolean, copies: Copies): Promise<Fetched> {
  const arrival = new Arrival(seat);
  await arrival.join(START);
  const fetched = await fetchUntilThere(seat, gzip, copies);
  await arrival.join(fetched.position);
  arrival.leave();
  return fetched;
}

/**
 * Retries like a browser when the connection closes before its request was read, and like the SDK when the document
 * service is late.
 */
async function fetchUntilThere(seat: Seat, gzip: boolean, copies: Copies): Promise<Fetched> {
  const deadline = performance.now() + MS_MAX;
  for (let askedAgain = 0; ;) {
    try {
      return { ...(await fetchSnapshot(seat, gzip, copies)), askedAgain };
    } catch (error) {
      if (error instanceof CutOff && askedAgain < CUT_OFF_MAX) askedAgain += 1;
      else if (error instanceof NotReady && performance.now() < deadline) await sleep(RETRY_MS);
      else throw error;
    }
  }
}

async function fetchSnapshot({ gateway, room, token }: Seat, gzip: boolean, copies: Copies): Promise<Omit<Fetched, "askedAgain">> {
  const url = new URL(`/v1/rooms/${encodeURIComponent(room)}/snapshot`, gateway.replace("ws:", "http:"));
  let [etag, bytes, position]: [string, number, Position] = ["", 0, START];
  let copy = new FirstCopy();
  await streamingGet(
    url,
    { authorization: `Bearer ${token}`, ...(gzip ? { "accept-encoding": "gzip" } : {}) },
    {
      receiveHead: ({ status, headers }) => {
        if (status === 503) throw new NotReady(`the snapshot of ${room}: HTTP ${status}`);
        if (status !== 200 || (headers["content-encoding"] === "gzip") !== gzip)
          throw new Error(`the snapshot of ${room}: HTTP ${status} ${headers["content-encoding"] ?? "plain"}`);
        etag = headers["etag"]!;
        position = { epoch: Number(headers["x-coroom-epoch"]) as Epoch, seq: Number(headers["x-coroom-seq"]) as Seq };
        copy = copies.get(etag) ?? copy;
        copies.set(etag, copy);
      },
      receiveBytes: (piece) => {
        if (!copy.matches(piece, bytes)) throw new Error(`different bytes under the same ETag ${etag}`);
        bytes += piece.byteLength;
      },
    },
  );
  if (bytes !== copy.bytes.byteLength) throw new Error(`fewer bytes under the same ETag ${etag}`);
  return { position, etag, bytes };
}

function sentOf(arrived: readonly Fetched[]): Record<string, number> {
  const sent: Record<string, number> = {};
  for (const { etag } of arrived) sent[etag] = (sent[etag] ?? 0) + 1;
  return sent;
}

function lettersOf(state: Uint8Array): number {
  const doc = new Y.Doc();
  Y.applyUpdate(doc, state);
  return doc.getText(TEXT).length;
}

/** The edit has an id, so a retry after a lost answer is ordered only once. */
function post(seat: Seat, edit: Uint8Array): Promise<number> {
  const key = randomUUID();
  return retried(() => postOnce(seat, edit, key));
}

async function retried<Result>(request: () => Promise<Result>): Promise<Result> {
  const deadline = performance.now() + MS_MAX;
  for (;;) {
    try {
      return await request();
    } catch (error) {
      const isWorthAnother = error instanceof NotReady || error instanceof TypeError; // fetch throws a TypeError when the connection breaks.
      if (!isWorthAnother || performance.now() > deadline) throw error;
      await sleep(RETRY_MS);
    }
  }
}

/** Returns the edit's seq. */
async function postOnce({ gateway, room, token }: Seat, edit: Uint8Array, key: string): Promise<number> {
  const headers = { "authorization": `Bearer ${token}`, "content-type": "application/octet-stream", "idempotency-key": key };
  const answer = await fetch(`${gateway.replace("ws:", "http:")}/v1/rooms/${encodeURIComponent(room)}/edits`, {
    method: "POST",
    headers,
    body: Buffer.from(edit),
  });
  if (answer.status === 503 || answer.status === 504) throw new NotReady(`an edit: HTTP ${answer.status} ${await answer.text()}`);
  if (!answer.ok) throw new Error(`an edit was rejected: HTTP ${answer.status} ${await answer.text()}`);
  return Number(answer.headers.get("x-coroom-seq"));
}

/** Waits until the document service has read the edit with this seq, so that later snapshots contain it. */
function read({ gateway, room, token }: Seat, seq: number): Promise<void> {
  const url = `${gateway.replace("ws:", "http:")}/v1/rooms/${encodeURIComponent(room)}/snapshot?minSeq=${seq}`;
  return retried(async () => {
    const answer = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
    await answer.arrayBuffer();
    if (answer.status === 503 || answer.status === 504) throw new NotReady(`the snapshot of ${room}: HTTP ${answer.status}`);
    if (!answer.ok) throw new Error(`the snapshot of ${room}: HTTP ${answer.status}`);
  });
}

const WORDS =
  "the of and to in is you that it he was for on are as with his they at be this have from or one had by word but not what all were we when your can said there use an each which she do how their if will up other about out many then them these so some her would make like him into time has look two more write go see number no way could people".split(
    " ",
  );

serveCalls(functions);
