/**
 * A room's owner for the gateway's system tests: orders edits in memory and answers over real NATS like a room server.
 * It can be silent, lose messages, or be gone.
 */

import * as encoding from "lib0/encoding";
import type { Msg, NatsConnection, Subscription } from "nats";

import {
  decodeToOwner,
  encodeOwnerReply,
  encodeFromOwner,
  type OwnerReply,
  type OwnerAnnouncement,
  type SubmittedEdit,
  type ToOwner,
} from "../../shared/bus/envelope.ts";
import { decodeJson, encodeJson } from "../../shared/bus/json-messages.ts";
import { ClaimRequest } from "../../shared/bus/placement-messages.ts";
import { decodePresenceUp, encodePresenceDown } from "../../shared/bus/presence-batches.ts";
import {
  decodePresenceToOwner,
  encodePresenceFromServer,
  isPresenceToOwner,
  type PresenceFromServer,
  type PresenceToOwner,
} from "../../shared/bus/presence-messages.ts";
import { editsBytesOf, encodeEditsRecord, encodeEpochRecord } from "../../shared/bus/record.ts";
import type { Subjects } from "../../shared/bus/subjects.ts";
import { writeCommittedEdits } from "../../shared/wire/committed-edits.ts";
import type { ClientId, Epoch, GatewayId, RoomKey, Seq, ServerId, UnixMillis, UserId } from "../../shared/ids.ts";

const ANSWER_BYTES_MAX = 512 * 1024;

/** The state that outlives an owner. */
export class FakeLog {
  epoch = 0;
  readonly parts: { readonly firstSeq: number; readonly lastSeq: number; readonly bytes: Uint8Array }[] = [];
  readonly edits: SubmittedEdit[] = [];
  readonly watermarks = new Map<ClientId, number>();

  /** Edits of one client in the first epoch, before the log has an owner. */
  static of(client: ClientId, payloads: readonly Uint8Array[]): FakeLog {
    const log = new FakeLog();
    payloads.forEach((payload, index) => {
      const [seq, counter] = [(index + 1) as Seq, index + 1];
      const edits = { epoch: 1 as Epoch, firstSeq: seq, edits: [{ client, counter, parentSeq: 0 as Seq, payload }] };
      log.parts.push({ firstSeq: seq, lastSeq: seq, bytes: encoding.encode((out) => writeCommittedEdits(out, edits)) });
      log.edits.push({ author: { user: "ann" as UserId, client }, counter, ackedThrough: 0, parentSeq: 0 as Seq, payload });
    });
    return log;
  }
}

export class FakeOwner {
  readonly #connection: NatsConnection;
  readonly #subjects: Subjects;
  readonly #log: FakeLog;
  readonly #room: RoomKey;
  readonly server: ServerId;
  readonly #subscriptions: Subscription[] = [];
  readonly #heart: NodeJS.Timeout;
  readonly claims: ClaimRequest[] = [];
  readonly received: ToOwner[] = [];
  #records = 0;
  #epoch = 0;
  /** `lose-records`: edits reach the log, but the records do not reach the gateways. */
  mode: "serve" | "ignore-edits" | "lose-records" | "silent" = "serve";
  /** Called with presence in every mode. Without it, the owner answers only with its name. */
  onPresence: (message: PresenceToOwner, reply: (answer: PresenceFromServer) => void) => void = () => {};

  constructor(connection: NatsConnection, subjects: Subjects, log: FakeLog, room: RoomKey, server: string) {
    this.#connection = connection;
    this.#subjects = subjects;
    this.#log = log;
    this.#room = room;
    this.server = server as ServerId;
    this.#heart = setInterval(() => this.#beat(), 50);
    this.#beat();
    this.#subscribe(subjects.claim(this.server), (bytes, reply) => {
      if (this.mode === "silent") return;
      this.claims.push(decodeJson(ClaimRequest, bytes)!);
      this.own();
      reply(encodeJson({ kind: "owned", server: this.server, epoch: this.#epoch }));
    });
  }

  /** Takes over the room, as after a claim. */
  own(): void {
    if (this.#epoch > 0) return;
    this.#subscribe(this.#subjects.toOwner(this.#room), (bytes) => {
      const message = isPresenceToOwner(bytes) ? decodePresenceToOwner(bytes.slice())! : decodeToOwner(bytes.slice())!;
      if (message.kind === "members" || message.kind === "states" || message.kind === "sync") this.#receivePresence(message);
      else this.#receive(message);
    });
    this.#subscribe(this.#subjects.presenceToServer(this.server), (bytes) => {
      for (const { room, message } of decodePresenceUp(bytes.slice())!.entries)
        if (room === this.#room) this.#receivePresence(decodePresenceToOwner(message)!);
    });
    this.#epoch = this.#log.epoch += 1;
    this.#publish(encodeEpochRecord({ id: this.#nextId(), time: Date.now() as UnixMillis, epoch: this.#epoch as Epoch, head: this.#head }));
  }

  /** Stops like a killed process. */
  stop(): void {
    clearInterval(this.#heart);
    for (const subscription of this.#subscriptions) subscription.unsubscribe();
  }

  beacon(): void {
    this.announce({ kind: "beacon", epoch: this.#epoch as Epoch, head: this.#head });
  }

  announce(message: OwnerAnnouncement): void {
    this.#publish(encodeFromOwner(message));
  }

  #receivePresence(message: PresenceToOwner): void {
    const timing = { tickMs: 50, slots: 1, sendAtMs: 0 };
    const answer = (given: PresenceFromServer): void => {
      const entries = [{ room: this.#room, message: encodePresenceFromServer(given) }];
      this.#connection.publish(this.#subjects.presenceToGateway(message.gateway, this.server), encodePresenceDown({ timing, entries }));
    };
    const status = { mode: "flat", participants: 0, presencePerSecond: 30, shed: 0 } as const;
    if (message.kind === "sync") answer({ kind: "head", epoch: this.#epoch as Epoch, number: 0, status }); // Otherwise the gateway would not know the owner.
    this.onPresence(message, answer);
  }

  get #head(): Seq {
    return this.#log.edits.length as Seq;
  }

  #beat(): void {
    if (this.mode === "silent") return;
    this.#connection.publish(this.#subjects.servers, encodeJson({ server: this.server, rooms: 1, draining: false, time: Date.now() }));
  }

  #receive(message: ToOwner): void {
    if (this.mode === "silent") return;
    this.received.push(message);
    if (message.kind === "edits" && this.mode !== "ignore-edits") this.#order(message.gateway, message.edits);
    if (message.kind === "catch-up-request") {
      const parts = this.#partsAfter(message.after.seq);
      const answer: OwnerReply =
        message.after.seq > this.#head
          ? {
              kind: "catch-up",
              request: message.request,
              epoch: this.#epoch as Epoch,
              head: this.#head,
              answer: { kind: "resync", reason: "ahead" },
            }
          : {
              kind: "catch-up",
              request: message.request,
              epoch: this.#epoch as Epoch,
              head: this.#head,
              answer: { kind: "edits", parts },
            };
      this.#answer(message.gateway, answer);
    }
  }

  /** As many as one answer of a room server holds. */
  #partsAfter(seq: Seq): Uint8Array[] {
    let bytes = 0;
    const later = this.#log.parts.filter(({ lastSeq }) => lastSeq > seq);
    return later.filter((part, index) => (bytes += part.bytes.byteLength) <= ANSWER_BYTES_MAX || index === 0).map((part) => part.bytes);
  }

  #order(gateway: GatewayId, edits: readonly SubmittedEdit[]): void {
    const accepted: SubmittedEdit[] = [];
    for (const edit of edits) {
      const { client } = edit.author;
      const watermark = this.#log.watermarks.get(client) ?? edit.ackedThrough;
      if (edit.counter === watermark + 1) {
        this.#log.watermarks.set(client, edit.counter);
        accepted.push(edit);
      } else if (edit.counter <= watermark) {
        this.#answer(gateway, { kind: "acked", epoch: this.#epoch as Epoch, client, counter: edit.counter, seq: this.#head, exact: false });
      } else {
        this.#answer(gateway, {
          kind: "refused",
          epoch: this.#epoch as Epoch,
          client,
          counter: edit.counter,
          reason: "gap",
          expected: watermark + 1,
          retryAfterMs: 0,
        });
      }
    }
    if (accepted.length === 0) return;
    const firstSeq = (this.#head + 1) as Seq;
    this.#log.edits.push(...accepted);
    const bytes = encodeEditsRecord({
      id: this.#nextId(),
      time: Date.now() as UnixMillis,
      users: new Map(accepted.map(({ author }) => [author.client, author.user])),
      edits: {
        epoch: this.#epoch as Epoch,
        firstSeq,
        edits: accepted.map(({ author, counter, payload }) => ({ client: author.client, counter, parentSeq: 0 as Seq, payload })),
      },
    });
    this.#log.parts.push({ firstSeq, lastSeq: this.#head, bytes: editsBytesOf(bytes) });
    if (this.mode === "serve") this.#publish(bytes);
  }

  #nextId(): string {
    this.#records += 1;
    return `${this.server}.${this.#records}`;
  }

  #publish(bytes: Uint8Array): void {
    this.#connection.publish(this.#subjects.editsOut(this.#room), bytes);
  }

  #answer(gateway: GatewayId, answer: OwnerReply): void {
    this.#connection.publish(this.#subjects.toGateway(gateway, this.#room), encodeOwnerReply(answer));
  }

  #subscribe(subject: string, receive: (bytes: Uint8Array, reply: (bytes: Uint8Array) => void) => void): void {
    const callback = (error: Error | null, msg: Msg): void => {
      if (error === null) receive(msg.data, (bytes) => void msg.respond(bytes));
    };
    this.#subscriptions.push(this.#connection.subscribe(subject, { callback }));
  }
}
