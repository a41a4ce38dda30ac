/**
 * One room's participants in a load process, each on a socket of its own. A state's time of sending travels in it, so
 * that its age is known wherever it arrives. Observers read every state, the others only who is there until they have
 * been told of all, and count frames and bytes.
 */

import type { ClientId, ClientKey, RoomId, Seq } from "../../shared/ids.ts";
import { START } from "../../shared/ids.ts";
import { encodeFrame } from "../../shared/wire/codec.ts";
import { type ClientFrame, FrameType, PROTOCOL_VERSION, type RoomMode } from "../../shared/wire/frames.ts";
import { decodePoint, encodePoint } from "../../shared/wire/positions.ts";
import { CURSOR, type ParticipantNumber, type PresenceNews } from "../../shared/wire/presence.ts";
import { decodeOnce } from "./decode-once.ts";
import type { Seat } from "./enter.ts";
import { keystroke } from "./keystroke.ts";
import { Latencies } from "./latencies.ts";
import { type LoadSocket, openSocket } from "./web-socket.ts";

/** Who reads every state for as long as it is there. */
export type Observers = "one in twenty" | "everybody";

/** Told of every receipt of an edit by somebody. `own`: by its author. */
export type Receipt = {
  readonly by: Participant;
  readonly author: ClientId;
  readonly counter: number;
  readonly sentAt: number;
  readonly at: number;
  readonly own: boolean;
};

/** How often a load pings: whoever is silent for longer than a gateway waits is closed. */
export const PING_MS = 20_000;
const OBSERVER_IN = 20;
const STATE_FIELD = "state";
const STATE_JSON_BYTES = 288;
/** A state's time is told in tenths of a millisecond, as a coordinate. */
const TICKS_PER_MS = 10;

export class PresenceRoom {
  participants: Participant[] = [];
  readonly observers: Observers;
  /** By client, by counter. */
  readonly sentAt = new Map<ClientId, number[]>();
  /** As the room's owner numbers them. */
  readonly numbers = new Map<ClientId, ParticipantNumber>();
  presence = new Latencies();
  measuring = false;
  onReceipt: (receipt: Receipt) => void = () => {};

  constructor(seats: readonly Seat[], observers: Observers) {
    this.observers = observers;
    this.add(seats);
  }

  add(seats: readonly Seat[]): Participant[] {
    const added = seats.map((seat, index) => new Participant(this, seat, this.participants.length + index));
    this.participants.push(...added);
    return added;
  }

  /** Edits sent by those who are or were there. */
  get sent(): number {
    let sent = 0;
    for (const times of this.sentAt.values()) sent += times.length;
    return sent;
  }

  /** So that nobody who only looks on is taken for gone. */
  ping(): void {
    for (const participant of this.participants) participant.ping();
  }

  get isSettled(): boolean {
    return this.participants.every(({ seq }) => seq === this.sent);
  }

  get allKnowAll(): boolean {
    return this.participants.every(({ roster }) => roster === this.participants.length);
  }
}

export class Participant {
  readonly #room: PresenceRoom;
  readonly #seat: Seat;
  readonly #index: number;
  readonly #isObserver: boolean;
  #socket: LoadSocket | undefined;
  #channel = 0;
  #client: ClientId | undefined;
  #known = new Set<ParticipantNumber>();
  #rosterDone = false;
  #lastFrameAt = 0;
  #longestSilence = 0;
  readonly modes: { readonly mode: RoomMode; readonly at: number }[] = [];
  /** What was sent since has to come at once. */
  joinedAt = Number.POSITIVE_INFINITY;
  seq = 0;
  frames = 0;
  bytes = 0;

  constructor(room: PresenceRoom, seat: Seat, index: number) {
    this.#room = room;
    this.#seat = seat;
    this.#index = index;
    this.#isObserver = room.observers === "everybody" || index % OBSERVER_IN === 0;
  }

  get client(): ClientId | undefined {
    return this.#client;
  }

  /** How many it has been told of. */
  get roster(): number {
    return this.#rosterDone ? this.#room.participants.length : this.#known.size;
  }

  /** Whether it takes exactly these to be there. */
  lists(numbers: ReadonlySet<ParticipantNumber>): boolean {
    return this.#known.size === numbers.size && [...this.#known].every((number) => numbers.has(number));
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

  /** What it counts begins anew. */
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
    const value = new TextEncoder().encode(text.replace('"pad":""', `"pad":"${"x".repeat(Math.max(0, STATE_JSON_BYTES - text.length))}"`));
    this.#say({ type: "presence", channel: this.#channel, fields: [{ name: STATE_FIELD, value }] });
  }

  /** Its counter. */
  edit(): number {
    const times = this.#room.sentAt.get(this.#client!)!;
    const counter = times.push(performance.now());
    this.#say({
      type: "edit",
      channel: this.#channel,
      counter,
      ackedThrough: 0,
      parentSeq: this.seq as Seq,
      payload: keystroke(this.#index + 1, counter),
    });
    return counter;
  }

  ping(): void {
    if (this.#client !== undefined) this.#say({ type: "ping", nonce: 0 });
  }

  close(): void {
    this.#socket?.close();
  }

  #say(frame: ClientFrame): void {
    this.#socket!.send(encodeFrame(frame));
  }

  #receiveFrame(bytes: Uint8Array): void {
    const isPresence = bytes[0] === FrameType["presence-news"];
    if (isPresence && this.#room.measuring) this.#countFrame(bytes.byteLength);
    if (isPresence && this.#rosterDone && !this.#isObserver) return;
    const frame = decodeOnce(bytes);
    switch (frame.type) {
      case "joined":
        this.#channel = frame.channel;
        this.#client = frame.client;
        this.joinedAt = performance.now();
        if (!this.#room.sentAt.has(frame.client)) this.#room.sentAt.set(frame.client, []);
        return;
      case "mode":
        if (this.modes.at(-1)?.mode !== frame.mode) this.modes.push({ mode: frame.mode, at: performance.now() });
        return;
      case "presence-news":
        return this.#receiveNews(frame.news);
      case "committed":
        return this.#receiveEdits(frame.edits.firstSeq, frame.edits.edits);
      case "ack":
        return this.#receiveEdits(
          frame.seq,
          Array.from({ length: frame.count }, (_, index) => ({ client: this.#client!, counter: frame.counter + index })),
        );
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

  #receiveNews(news: PresenceNews): void {
    if (!this.#rosterDone) this.#receiveRoster(news);
    if (!this.#room.measuring || news.whole || !this.#isObserver) return;
    const now = performance.now() * TICKS_PER_MS;
    for (const { fields } of news.states)
      for (const { name, value } of fields) if (name === CURSOR) this.#room.presence.record((now - decodePoint(value)!.x) / TICKS_PER_MS);
  }

  #receiveRoster({ whole, present, gone }: PresenceNews): void {
    if (whole) this.#known.clear();
    for (const { number, client } of present) {
      this.#known.add(number);
      this.#room.numbers.set(client, number);
    }
    for (const number of gone) this.#known.delete(number);
    if (this.#room.observers === "everybody" || this.#known.size < this.#room.participants.length) return;
    this.#rosterDone = true;
    this.#known = new Set();
  }

  /** A repeat is dropped, as any client does it. */
  #receiveEdits(firstSeq: Seq, given: readonly { client: ClientId; counter: number }[]): void {
    if (firstSeq > this.seq + 1) throw new Error(`${this.#seat.clientKey}: seq ${firstSeq} after ${this.seq}`);
    const fresh = given.slice(this.seq + 1 - firstSeq);
    this.seq += fresh.length;
    const at = performance.now();
    for (const { client, counter } of fresh) {
      this.#room.onReceipt({
        by: this,
        author: client,
        counter,
        sentAt: this.#room.sentAt.get(client)![counter - 1]!,
        at,
        own: client === this.#client,
      });
    }
  }
}
