/**
 * A server and the network before it, in one process on the test's clock. Sockets delay, break and lose frames. The
 * server decodes the frames of `shared/wire` and passes them to a model of each room. A seed decides the faults.
 */

import { assert } from "../../shared/assert.ts";
import type { ClientId, ClientKey, Position, RoomId, Seq } from "../../shared/ids.ts";
import { Prng } from "../../shared/collections/prng.ts";
import type { Channel, ClientFrame, CommittedEdit, JoinRefusal, Rights, ServerFrame } from "../../shared/wire/frames.ts";
import type { PresenceDelta } from "../../shared/wire/presence.ts";
import { CLOSE } from "../../shared/wire/close-codes.ts";
import type { OpenSocket, SnapshotAnswer, ClientWorld } from "../ports.ts";
import type { ClientFakeClock } from "./fake-clock.ts";
import { LIMITS, ModelConnection, ModelRates } from "./model-connection.ts";
import { ModelPresence } from "./model-presence.ts";
import { ModelRoom, type ModelEdit } from "./model-room.ts";

/** Probabilities in [0, 1), each per frame or edit. */
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
  readonly clock: ClientFakeClock;
  limits = LIMITS;
  faults: Faults;
  tokenExpiresInMs = 86_400_000;
  rights: Rights = { read: true, write: true };
  /** Until this time the network delays all frames of clients, and then delivers them at once. */
  stalledUntil = 0;
  /** False: connections are rejected. */
  reachable = true;
  /** False: edits wait. */
  commits = true;
  answersReplays = true;
  /** True: the server enforces send rates like a gateway: it skips presence frames and closes connections. */
  keepsRates = false;
  /** Number of presence frames that the server skips, as if they exceeded the rate. */
  skippedCount = 0;
  /** False: the server treats each resubmitted edit as forged. */
  takesResubmits = true;
  refuseJoins: { reason: JoinRefusal; retryAfterMs: number } | undefined;
  snapshotsAvailable: boolean | "deleted" = true;
  snapshotOf: (edits: readonly CommittedEdit[]) => Uint8Array = () => new Uint8Array();
  /** Every frame that clients sent. */
  readonly receivedFrames: ClientFrame[] = [];
  /** URLs of all sockets that clients opened. */
  readonly requestedUrls: string[] = [];
  readonly connections = new Set<ModelConnection>();
  readonly #rooms = new Map<RoomId, ModelRoom>();
  readonly #presences = new Map<RoomId, ModelPresence>();
  readonly #rates = new ModelRates();
  readonly #prng: Prng;

  constructor(clock: ClientFakeClock, { seed = 1, faults = {} }: { seed?: number; faults?: Partial<Faults> } = {}) {
    this.clock = clock;
    this.#prng = new Prng(seed);
    this.faults = { ...NO_FAULTS, ...faults };
  }

  /** The ports of one client. */
  world(seed = 7): ClientWorld {
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

  readonly openSocket: OpenSocket = (url, listener) => {
    this.requestedUrls.push(url);
    const peer = new ModelConnection(this, listener);
    this.connections.add(peer);
    this.clock.after(this.delayMs(), () => (this.reachable ? peer.open() : peer.cut(1006)));
    return { send: (bytes) => peer.fromClient(bytes), close: () => peer.cut(undefined) };
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

  /** Cuts every connection: with a close code, or without the clients noticing. */
  cut(code: number | "silently" = 1006): void {
    for (const peer of this.connections) {
      if (code === "silently") peer.goDeaf();
      else peer.cut(code);
    }
  }

  send(frame: ServerFrame): void {
    for (const peer of this.connections) peer.toClient(frame);
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

  receive(peer: ModelConnection, frame: ClientFrame): void {
    if (this.keepsRates && !this.#isWithinRates(peer, frame)) return;
    this.receivedFrames.push(frame);
    switch (frame.type) {
      case "hello":
        return peer.toClient({
          type: "welcome",
          version: 1,
          connection: "c",
          limits: this.limits,
          tokenExpiresInMs: this.tokenExpiresInMs,
        });
      case "renew":
        return peer.toClient({ type: "renewed", tokenExpiresInMs: this.tokenExpiresInMs });
      case "ping":
        return peer.toClient({ type: "pong", nonce: frame.nonce });
      case "join":
        return this.#receiveJoin(peer, frame);
      case "leave":
        this.receiveGone(peer, frame.channel);
        return peer.toClient({ type: "left", channel: frame.channel, reason: "asked" });
      case "edit":
        return this.#receiveEditFrame(peer, frame);
      case "resubmit": {
        if (!this.takesResubmits) return;
        const { client, counter, ackedThrough, parentSeq, payload } = frame.edit;
        return this.#receiveEdit(peer.members.get(frame.channel)!.room, { client, counter, ackedThrough, parentSeq, payload });
      }
      case "presence":
        return this.#receivePresence(peer, frame);
      case "replay-request": {
        if (!this.answersReplays) return;
        const member = peer.members.get(frame.channel)!;
        return this.#replay(peer, member.room, frame.after, frame.through);
      }
    }
  }

  #receiveEditFrame(peer: ModelConnection, { channel, counter, ackedThrough, parentSeq, payload }: ClientFrame & { type: "edit" }): void {
    const member = peer.members.get(channel);
    assert(member !== undefined, "an edit names a channel that is joined");
    if (this.happens(this.faults.editLost)) return;
    const edit = { client: member.client, counter, ackedThrough, parentSeq, payload };
    this.#receiveEdit(member.room, edit);
    if (this.happens(this.faults.editTwice)) this.#receiveEdit(member.room, edit);
  }

  #receivePresence(peer: ModelConnection, { channel, fields }: ClientFrame & { type: "presence" }): void {
    if (this.skippedCount > 0) {
      this.skippedCount -= 1;
      return this.#passOver(peer, channel);
    }
    const { client, room } = peer.members.get(channel)!;
    const copied = fields.map(({ name, value }) => ({ name, value: value.slice() }));
    this.sendPresenceDelta(room, this.presence(room).show(client, copied));
  }

  #isWithinRates(peer: ModelConnection, frame: ClientFrame): boolean {
    const taken = this.#rates.take(peer, frame, this.limits, this.clock.now());
    if (taken === "too-fast") peer.cut(CLOSE.rateLimited.code);
    else if (taken === "passed-over" && frame.type === "presence") this.#passOver(peer, frame.channel);
    return taken === "taken";
  }

  #passOver(peer: ModelConnection, channel: Channel): void {
    peer.toClient({ type: "presence-again", channel });
  }

  /** Commits all waiting edits and sends them to all members. */
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

  /** A member has left, or its connection has ended. */
  receiveGone(peer: ModelConnection, channel: Channel): void {
    const member = peer.members.get(channel);
    peer.members.delete(channel);
    if (member !== undefined && this.presence(member.room).has(member.client)) {
      this.sendPresenceDelta(member.room, this.presence(member.room).leave(member.client));
    }
  }

  sendPresenceDelta(id: RoomId, delta: PresenceDelta): void {
    const channel = this.channelOf(id);
    for (const peer of this.connections) if (peer.members.has(channel)) peer.toClient({ type: "presence-delta", channel, delta });
  }

  #receiveJoin(peer: ModelConnection, { request, room: id, clientKey, position }: ClientFrame & { type: "join" }): void {
    if (this.refuseJoins !== undefined) return peer.toClient({ type: "join-refused", request, ...this.refuseJoins, message: "not now" });
    const room = this.room(id);
    const channel = this.channelOf(id);
    const resync = room.reasonToResync(position);
    const client = clientKey.replace("key-", "").padEnd(16, "_").slice(0, 16) as ClientId;
    peer.members.set(channel, { client, room: id, live: resync === undefined });
    peer.toClient({ type: "joined", request, channel, client, epoch: room.epoch, head: room.head, rights: this.rights });
    this.sendPresenceDelta(id, this.presence(id).enter(client));
    peer.toClient({ type: "presence-delta", channel, delta: this.presence(id).snapshot });
    if (room.saving !== "saved") peer.toClient({ type: "saving", channel, state: room.saving });
    if (resync !== undefined) return peer.toClient({ type: "resync-required", channel, reason: resync, head: this.#headOf(id) });
    this.#replay(peer, id, position.seq, room.head);
  }

  #receiveEdit(id: RoomId, edit: ModelEdit): void {
    const room = this.room(id);
    const channel = this.channelOf(id);
    const { client, counter } = edit;
    const verdict = this.happens(this.faults.editRefused) ? undefined : room.receiveEdit(edit);
    switch (verdict?.kind) {
      case undefined: // Only an edit that is not accepted yet can be rejected.
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

  /** Sends runs of one epoch, in order. */
  #replay(peer: ModelConnection, id: RoomId, after: number, through: number): void {
    const edits = this.room(id).log.slice(after, through);
    for (let start = 0; start < edits.length;) {
      const { epoch } = edits[start]!;
      let end = start;
      while (end < edits.length && edits[end]!.epoch === epoch && end - start < 10) end += 1;
      peer.toClient({
        type: "committed",
        channel: this.channelOf(id),
        edits: { epoch, firstSeq: (after + start + 1) as Seq, edits: edits.slice(start, end) },
      });
      start = end;
    }
  }

  /** Like a gateway: an author with one connection, whose edits fill the frame, receives an ack instead. */
  #deliver(id: RoomId, first: Seq, edits: CommittedEdit[]): void {
    const { epoch } = this.room(id);
    const channel = this.channelOf(id);
    const { client, counter } = edits[0]!;
    const soleAuthor = edits.every((edit, index) => edit.client === client && edit.counter === counter + index);
    const isAlone = [...this.connections].filter((peer) => peer.members.get(channel)?.client === client).length === 1;
    for (const peer of this.connections) {
      const member = peer.members.get(channel);
      if (member?.live !== true) continue;
      if (soleAuthor && isAlone && member.client === client)
        peer.toClient({ type: "ack", channel, epoch, counter, seq: first, count: edits.length });
      else {
        const frame: ServerFrame = { type: "committed", channel, edits: { epoch, firstSeq: first, edits } };
        if (!this.happens(this.faults.committedFrameLost)) peer.toClient(frame);
        if (this.happens(this.faults.committedFrameTwice)) peer.toClient(frame);
      }
    }
  }

  #answer(client: ClientId, frame: ServerFrame & { channel: Channel }): void {
    for (const peer of this.connections) if (peer.members.get(frame.channel)?.client === client) peer.toClient(frame);
  }

  #publish(id: RoomId, frame: ServerFrame): void {
    for (const peer of this.connections) if (peer.members.get(this.channelOf(id))?.live === true) peer.toClient(frame);
  }

  async #snapshot(url: string): Promise<SnapshotAnswer> {
    const id = decodeURIComponent(url.split("/").at(-2)!) as RoomId;
    const room = this.room(id);
    if (this.snapshotsAvailable === "deleted") return { kind: "deleted" };
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
