/**
 * A server and the network before it, in one process on the test's clock: sockets that delay, cut and go deaf,
 * and behind them the frames of `shared/wire` with a model of each room. What goes wrong is drawn from a seed.
 */

import { assert } from "../../shared/assert.ts";
import type { ClientId, ClientKey, Position, RoomId, Seq } from "../../shared/ids.ts";
import { Prng } from "../../shared/prng.ts";
import type { Channel, ClientFrame, CommittedEdit, JoinRefusal, Limits, Rights, ServerFrame } from "../../shared/wire/frames.ts";
import type { PresenceNews } from "../../shared/wire/presence.ts";
import { CLOSE } from "../../shared/wire/close-codes.ts";
import type { OpenSocket, SnapshotAnswer, World } from "../ports.ts";
import type { FakeClock } from "./fake-clock.ts";
import { Line } from "./model-line.ts";
import { ModelPresence } from "./model-presence.ts";
import { ModelRates } from "./model-rates.ts";
import { ModelRoom, type SubmittedEdit } from "./model-room.ts";

export const LIMITS: Limits = {
  pingIntervalMs: 1_000,
  silenceMsMax: 3_000,
  frameBytesMax: 10_000,
  editBytesMax: 5_000,
  editBurst: 30,
  editsPerSecond: 10,
  bytesBurst: 1_000_000,
  bytesPerSecond: 100_000,
  presenceBurst: 60,
  presencePerSecond: 30,
  presenceBytesMax: 8_192,
  presenceFieldsMax: 64,
  controlBurst: 300,
  controlsPerSecond: 20,
};

/** Chances in [0, 1), each for one frame or edit. */
export type Faults = {
  readonly committedFrameLost: number;
  readonly committedFrameTwice: number;
  readonly editLost: number;
  readonly editTwice: number;
  readonly editRefused: number;
  readonly delayMsMax: number;
};
const NO_FAULTS: Faults = { committedFrameLost: 0, committedFrameTwice: 0, editLost: 0, editTwice: 0, editRefused: 0, delayMsMax: 0 };

export class ModelServer {
  readonly clock: FakeClock;
  limits = LIMITS;
  faults: Faults;
  tokenExpiresInMs = 86_400_000;
  rights: Rights = { read: true, write: true };
  /** Until then the network holds back what clients send, and brings it all at once. */
  stalledUntil = 0;
  /** False: connections are refused. */
  reachable = true;
  /** False: edits wait. */
  commits = true;
  answersReplays = true;
  /** True: it passes presence over, and closes lines, as a gateway does. */
  keepsRates = false;
  /** So many frames of presence it passes over, as if the network had brought them all at once. */
  passesOver = 0;
  /** False: it takes each for forged. */
  takesResubmits = true;
  refuseJoins: { reason: JoinRefusal; retryAfterMs: number } | undefined;
  snapshotsAvailable = true;
  snapshotOf: (edits: readonly CommittedEdit[]) => Uint8Array = () => new Uint8Array();
  /** Every frame that clients sent. */
  readonly heard: ClientFrame[] = [];
  readonly lines = new Set<Line>();
  readonly #rooms = new Map<RoomId, ModelRoom>();
  readonly #presences = new Map<RoomId, ModelPresence>();
  readonly #rates = new ModelRates();
  readonly #prng: Prng;

  constructor(clock: FakeClock, { seed = 1, faults = {} }: { seed?: number; faults?: Partial<Faults> } = {}) {
    this.clock = clock;
    this.#prng = new Prng(seed);
    this.faults = { ...NO_FAULTS, ...faults };
  }

  /** One client's world. */
  world(seed = 7): World {
    const prng = new Prng(seed);
    let keys = 0;
    return {
      clock: this.clock,
      chance: { unit: () => prng.unit(), clientKey: () => `key-${seed}-${keys++}-aaaa` as ClientKey },
      openSocket: this.openSocket,
      fetchSnapshot: (url) => this.#snapshot(url),
      reportError: (error) => {
        throw error;
      },
    };
  }

  readonly openSocket: OpenSocket = (_url, listener) => {
    const line = new Line(this, listener);
    this.lines.add(line);
    this.clock.after(this.delayMs(), () => (this.reachable ? line.open() : line.cut(1006)));
    return { send: (bytes) => line.fromClient(bytes), close: () => line.cut(undefined) };
  };

  room(id = "notes"): ModelRoom {
    const room = this.#rooms.get(id as RoomId) ?? new ModelRoom();
    this.#rooms.set(id as RoomId, room);
    return room;
  }

  presence(id = "notes"): ModelPresence {
    const presence = this.#presences.get(id as RoomId) ?? new ModelPresence();
    this.#presences.set(id as RoomId, presence);
    return presence;
  }

  /** Cuts every line: with a close code, or so that the clients hear nothing of it. */
  cut(code: number | "silently" = 1006): void {
    for (const line of this.lines) {
      if (code === "silently") line.goDeaf();
      else line.cut(code);
    }
  }

  send(frame: ServerFrame): void {
    for (const line of this.lines) line.toClient(frame);
  }

  delayMs(): number {
    return this.#prng.unit() * this.faults.delayMsMax;
  }

  happens(chance: number): boolean {
    return this.#prng.chance(chance);
  }

  channelOf(room: RoomId): Channel {
    return [...this.#rooms.keys()].indexOf(room) + 1;
  }

  receive(line: Line, frame: ClientFrame): void {
    if (this.keepsRates && !this.#isWithinRates(line, frame)) return;
    this.heard.push(frame);
    switch (frame.type) {
      case "hello":
        return line.toClient({
          type: "welcome",
          version: 1,
          connection: "c",
          limits: this.limits,
          tokenExpiresInMs: this.tokenExpiresInMs,
        });
      case "renew":
        return line.toClient({ type: "renewed", tokenExpiresInMs: this.tokenExpiresInMs });
      case "ping":
        return line.toClient({ type: "pong", nonce: frame.nonce });
      case "join":
        return this.#receiveJoin(line, frame);
      case "leave":
        this.receiveGone(line, frame.channel);
        return line.toClient({ type: "left", channel: frame.channel, reason: "asked" });
      case "edit":
        return this.#receiveEditFrame(line, frame);
      case "resubmit": {
        if (!this.takesResubmits) return;
        const { client, counter, ackedThrough, parentSeq, payload } = frame.edit;
        return this.#receiveEdit(line.members.get(frame.channel)!.room, { client, counter, ackedThrough, parentSeq, payload });
      }
      case "presence":
        return this.#receivePresence(line, frame);
      case "replay-request": {
        if (!this.answersReplays) return;
        const member = line.members.get(frame.channel)!;
        return this.#replay(line, member.room, frame.after, frame.through);
      }
    }
  }

  #receiveEditFrame(line: Line, { channel, counter, ackedThrough, parentSeq, payload }: ClientFrame & { type: "edit" }): void {
    const member = line.members.get(channel);
    assert(member !== undefined, "an edit names a channel that is joined");
    if (this.happens(this.faults.editLost)) return;
    const edit = { client: member.client, counter, ackedThrough, parentSeq, payload };
    this.#receiveEdit(member.room, edit);
    if (this.happens(this.faults.editTwice)) this.#receiveEdit(member.room, edit);
  }

  #receivePresence(line: Line, { channel, fields }: ClientFrame & { type: "presence" }): void {
    if (this.passesOver > 0) {
      this.passesOver -= 1;
      return this.#passOver(line, channel);
    }
    const { client, room } = line.members.get(channel)!;
    const copied = fields.map(({ name, value }) => ({ name, value: value.slice() }));
    this.tellPresence(room, this.presence(room).show(client, copied));
  }

  #isWithinRates(line: Line, frame: ClientFrame): boolean {
    const taken = this.#rates.take(line, frame, this.limits, this.clock.now());
    if (taken === "too-fast") line.cut(CLOSE.rateLimited.code);
    else if (taken === "passed-over" && frame.type === "presence") this.#passOver(line, frame.channel);
    return taken === "taken";
  }

  #passOver(line: Line, channel: Channel): void {
    line.toClient({ type: "presence-again", channel });
  }

  /** What waits is committed, and everyone told. */
  commit(id: RoomId): void {
    const room = this.room(id);
    const { first, edits } = room.commit();
    if (edits.length > 0) this.#deliver(id, first, edits);
  }

  setSaving(id: RoomId, saving: ModelRoom["saving"]): void {
    this.room(id).saving = saving;
    this.commits = saving === "saved";
    this.#publish(id, { type: "saving", channel: this.channelOf(id), state: saving });
    if (saving === "saved") this.commit(id);
    else {
      for (const edit of this.room(id).waiting) {
        this.#publish(id, { type: "tentative", channel: this.channelOf(id), edit: this.room(id).tentativeOf(edit) });
      }
    }
  }

  /** A member has left, or its line is no more. */
  receiveGone(line: Line, channel: Channel): void {
    const member = line.members.get(channel);
    line.members.delete(channel);
    if (member !== undefined && this.presence(member.room).has(member.client)) {
      this.tellPresence(member.room, this.presence(member.room).leave(member.client));
    }
  }

  tellPresence(id: RoomId, news: PresenceNews): void {
    const channel = this.channelOf(id);
    for (const line of this.lines) if (line.members.has(channel)) line.toClient({ type: "presence-news", channel, news });
  }

  #receiveJoin(line: Line, { request, room: id, clientKey, position }: ClientFrame & { type: "join" }): void {
    if (this.refuseJoins !== undefined) return line.toClient({ type: "join-refused", request, ...this.refuseJoins, message: "not now" });
    const room = this.room(id);
    const channel = this.channelOf(id);
    const resync = room.reasonToResync(position);
    const client = clientKey.replace("key-", "").padEnd(16, "_").slice(0, 16) as ClientId;
    line.members.set(channel, { client, room: id, live: resync === undefined });
    line.toClient({ type: "joined", request, channel, client, epoch: room.epoch, head: room.head, rights: this.rights });
    this.tellPresence(id, this.presence(id).enter(client));
    line.toClient({ type: "presence-news", channel, news: this.presence(id).whole });
    if (room.saving !== "saved") line.toClient({ type: "saving", channel, state: room.saving });
    if (resync !== undefined) return line.toClient({ type: "resync-required", channel, reason: resync, head: this.#headOf(id) });
    this.#replay(line, id, position.seq, room.head);
  }

  #receiveEdit(id: RoomId, edit: SubmittedEdit): void {
    const room = this.room(id);
    const channel = this.channelOf(id);
    const { client, counter } = edit;
    const verdict = this.happens(this.faults.editRefused) ? undefined : room.receiveEdit(edit);
    switch (verdict?.kind) {
      case undefined: // Only what is not accepted yet can be refused.
        if (
          counter > (room.log.findLast((logged) => logged.client === client)?.counter ?? edit.ackedThrough) &&
          !room.waiting.some((waiting) => waiting.client === client && waiting.counter >= counter)
        ) {
          this.#answer(client, { type: "nack", channel, counter, reason: "write-backpressure", expected: counter, retryAfterMs: 200 });
        }
        return;
      case "accepted":
        if (room.saving !== "saved") this.#publish(id, { type: "tentative", channel, edit: room.tentativeOf(edit) });
        if (this.commits) this.clock.after(this.delayMs(), () => this.commits && this.commit(id));
        return;
      case "waiting":
        return;
      case "committed":
        if (verdict.seq > 0) this.#answer(client, { type: "acked-through", channel, epoch: room.epoch, counter, seq: room.head });
        return;
      case "refused":
        return this.#answer(client, {
          type: "nack",
          channel,
          counter,
          reason: verdict.reason,
          expected: verdict.expected,
          retryAfterMs: verdict.reason === "gap" ? 0 : 200,
        });
    }
  }

  /** Runs of one epoch, in order. */
  #replay(line: Line, id: RoomId, after: number, through: number): void {
    const edits = this.room(id).log.slice(after, through);
    for (let start = 0; start < edits.length;) {
      const { epoch } = edits[start]!;
      let end = start;
      while (end < edits.length && edits[end]!.epoch === epoch && end - start < 10) end += 1;
      line.toClient({
        type: "committed",
        channel: this.channelOf(id),
        edits: { epoch, firstSeq: (after + start + 1) as Seq, edits: edits.slice(start, end) },
      });
      start = end;
    }
  }

  /** Like a gateway: an author whose edits fill the frame gets an ack instead. */
  #deliver(id: RoomId, first: Seq, edits: CommittedEdit[]): void {
    const { epoch } = this.room(id);
    const channel = this.channelOf(id);
    const { client, counter } = edits[0]!;
    const soleAuthor = edits.every((edit, index) => edit.client === client && edit.counter === counter + index);
    for (const line of this.lines) {
      const member = line.members.get(channel);
      if (member?.live !== true) continue;
      if (soleAuthor && member.client === client) line.toClient({ type: "ack", channel, epoch, counter, seq: first, count: edits.length });
      else {
        const frame: ServerFrame = { type: "committed", channel, edits: { epoch, firstSeq: first, edits } };
        if (!this.happens(this.faults.committedFrameLost)) line.toClient(frame);
        if (this.happens(this.faults.committedFrameTwice)) line.toClient(frame);
      }
    }
  }

  #answer(client: ClientId, frame: ServerFrame & { channel: Channel }): void {
    for (const line of this.lines) if (line.members.get(frame.channel)?.client === client) line.toClient(frame);
  }

  #publish(id: RoomId, frame: ServerFrame): void {
    for (const line of this.lines) if (line.members.get(this.channelOf(id))?.live === true) line.toClient(frame);
  }

  async #snapshot(url: string): Promise<SnapshotAnswer> {
    const id = decodeURIComponent(url.split("/").at(-2)!) as RoomId;
    const room = this.room(id);
    if (!this.snapshotsAvailable) return { kind: "unavailable", retryAfterMs: 100, why: "HTTP 503" };
    if (room.trimmedThrough === 0) return { kind: "none" };
    const through = room.snapshotThrough ?? room.trimmedThrough;
    return {
      kind: "snapshot",
      position: this.#positionAt(id, through),
      last: room.log[through - 1],
      payload: this.snapshotOf(room.log.slice(0, through)),
    };
  }

  #headOf(id: RoomId): Position {
    return { epoch: this.room(id).epoch, seq: this.room(id).head };
  }

  #positionAt(id: RoomId, seq: number): Position {
    return { epoch: this.room(id).log[seq - 1]!.epoch, seq: seq as Seq };
  }
}
