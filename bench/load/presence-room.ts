/**
 * One room's participants in a load process, each on its own socket. A state contains the time of its sending, so that
 * every receiver knows its age. Observers decode every state. The others decode presence only until they know all
 * participants, and then count frames and bytes.
 */

import { type ClientId, type ClientKey, type RoomId, type Seq, START } from "../../shared/ids.ts";
import { encodeFrame, decodeFrame } from "../../shared/wire/codec.ts";
import { type ClientFrame, FrameType, PROTOCOL_VERSION, type RoomMode, type Frame } from "../../shared/wire/frames.ts";
import { decodePoint, encodePoint } from "../../shared/wire/positions.ts";
import { CURSOR, type ParticipantNumber, type PresenceDelta } from "../../shared/wire/presence.ts";
import { keystroke } from "../../cli/bench/keystroke.ts";
import { Latencies } from "../../cli/bench/latencies.ts";
import type { Seat } from "./enter.ts";
import { type LoadSocket, openSocket } from "./web-socket.ts";

/** Frames that are kept because other sockets will receive them. */
const DECODED_MAX = 16;
const decoded: { readonly bytes: Buffer; readonly frame: Frame }[] = [];

/** Decodes a frame once that many sockets receive, because the load shares the machine with the servers it measures. */
function decodeOnce(bytes: Uint8Array): Frame {
  const known = decoded.findLast((one) => one.bytes.equals(bytes));
  if (known !== undefined) return known.frame;
  const copy = Buffer.from(bytes);
  const frame = decodeFrame(copy);
  if (frame === undefined || frame.type === "unknown") throw new Error(`a frame cannot be decoded: ${bytes[0]}`);
  decoded.push({ bytes: copy, frame });
  if (decoded.length > DECODED_MAX) decoded.shift();
  return frame;
}

/** Participants that decode every state. */
type Observers = "one in twenty" | "everybody";

/** One receipt of an edit. `own`: by its author. */
export type EditReceipt = {
  readonly by: LoadParticipant;
  readonly sentAt: number;
  readonly at: number;
  readonly own: boolean;
};

/** Interval of a load's pings. A gateway closes a client that is silent for longer than its limit. */
export const PING_MS = 20_000;
const OBSERVER_IN = 20;
/** A state's time is in tenths of a millisecond, encoded as a coordinate. */
const TICKS_PER_MS = 10;

export class PresenceRoom {
  participants: LoadParticipant[] = [];
  readonly observers: Observers;
  /** By client and counter. */
  readonly sentAt = new Map<ClientId, number[]>();
  /** Numbers that the room's owner assigned. */
  readonly numbers = new Map<ClientId, ParticipantNumber>();
  presence = new Latencies();
  measuring = false;
  onReceipt: (receipt: EditReceipt) => void = () => {};

  constructor(seats: readonly Seat[], observers: Observers) {
    this.observers = observers;
    this.add(seats);
  }

  add(seats: readonly Seat[]): LoadParticipant[] {
    const added = seats.map((seat, index) => new LoadParticipant(this, seat, this.participants.length + index));
    this.participants.push(...added);
    return added;
  }

  /** Edits sent by all present and former participants. */
  get sent(): number {
    let sent = 0;
    for (const times of this.sentAt.values()) sent += times.length;
    return sent;
  }

  /** Keeps participants without input connected. */
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

export class LoadParticipant {
  readonly #room: PresenceRoom;
  readonly #seat: Seat;
  readonly #index: number;
  readonly #isObserver: boolean;
  #socket: LoadSocket | undefined;
  #channel = 0;
  #client: ClientId | undefined;
  #known = new Set<ParticipantNumber>();
  #rosterDone = false;
  /** Counter of the last own edit that was received. */
  #acked = 0;
  #lastFrameAt = 0;
  #longestSilence = 0;
  readonly modes: { readonly mode: RoomMode; readonly at: number }[] = [];
  /** Edits sent after this moment must arrive live. */
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

  /** Number of known participants. */
  get roster(): number {
    return this.#rosterDone ? this.#room.participants.length : this.#known.size;
  }

  /** Whether the list contains exactly these participants. */
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
    this.#sendFrame({ type: "hello", version: PROTOCOL_VERSION, token: this.#seat.token, agent: "bench" });
    this.#sendFrame({
      type: "join",
      request: 1,
      room: this.#seat.room as RoomId,
      clientKey: this.#seat.clientKey as ClientKey,
      position: START,
    });
  }

  /** Resets the counts. */
  forget(): void {
    [this.frames, this.bytes, this.#longestSilence, this.#lastFrameAt] = [0, 0, 0, performance.now()];
  }

  longestSilence(): number {
    return Math.max(this.#longestSilence, performance.now() - this.#lastFrameAt);
  }

  point(): void {
    const value = encodePoint({ x: Math.round(performance.now() * TICKS_PER_MS), y: this.#index });
    this.#sendFrame({ type: "presence", channel: this.#channel, fields: [{ name: CURSOR, value }] });
  }

  /** Own edits that are not committed yet. */
  get unacked(): number {
    return (this.#room.sentAt.get(this.#client!)?.length ?? 0) - this.#acked;
  }

  /** All edits of a participant have the same number of letters. */
  edit(letters = 1): void {
    const times = this.#room.sentAt.get(this.#client!)!;
    const counter = times.push(performance.now());
    this.#sendFrame({
      type: "edit",
      channel: this.#channel,
      counter,
      ackedThrough: 0,
      parentSeq: this.seq as Seq,
      payload: keystroke(this.#index + 1, counter, letters),
    });
  }

  ping(): void {
    if (this.#client !== undefined) this.#sendFrame({ type: "ping", nonce: 0 });
  }

  close(): void {
    this.#socket?.close();
  }

  #sendFrame(frame: ClientFrame): void {
    this.#socket!.send(encodeFrame(frame));
  }

  #receiveFrame(bytes: Uint8Array): void {
    const isPresence = bytes[0] === FrameType["presence-delta"];
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
      case "presence-delta":
        return this.#receiveDelta(frame.delta);
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

  #receiveDelta(delta: PresenceDelta): void {
    if (!this.#rosterDone) this.#receiveRoster(delta);
    if (!this.#room.measuring || delta.snapshot || !this.#isObserver) return;
    const now = performance.now() * TICKS_PER_MS;
    for (const { fields } of delta.states)
      for (const { name, value } of fields) if (name === CURSOR) this.#room.presence.record((now - decodePoint(value)!.x) / TICKS_PER_MS);
  }

  #receiveRoster({ snapshot, present, gone }: PresenceDelta): void {
    if (snapshot) this.#known.clear();
    for (const { number, client } of present) {
      this.#known.add(number);
      this.#room.numbers.set(client, number);
    }
    for (const number of gone) this.#known.delete(number);
    if (this.#room.observers === "everybody" || this.#known.size < this.#room.participants.length) return;
    this.#rosterDone = true;
    this.#known = new Set();
  }

  /** Ignores a repeat, as every client does. */
  #receiveEdits(firstSeq: Seq, given: readonly { client: ClientId; counter: number }[]): void {
    if (firstSeq > this.seq + 1) throw new Error(`${this.#seat.clientKey}: seq ${firstSeq} after ${this.seq}`);
    const fresh = given.slice(this.seq + 1 - firstSeq);
    this.seq += fresh.length;
    const at = performance.now();
    for (const { client, counter } of fresh) {
      if (client === this.#client) this.#acked = counter;
      this.#room.onReceipt({
        by: this,
        sentAt: this.#room.sentAt.get(client)![counter - 1]!,
        at,
        own: client === this.#client,
      });
    }
  }
}
