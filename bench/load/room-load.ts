/**
 * One room's members, each on its own socket, some of them writers. The members share one judge and one clock, and a
 * frame that several of them receive is decoded once.
 */

import * as decoding from "lib0/decoding";

import { type ClientId, type RoomId, type Seq, START } from "../../shared/ids.ts";
import { readRange } from "../../shared/wire/committed-edits.ts";
import { decodeFrame, encodeFrame } from "../../shared/wire/codec.ts";
import { readNumber } from "../../shared/wire/fields.ts";
import { type Frame, FrameType, PROTOCOL_VERSION, type UnknownFrame } from "../../shared/wire/frames.ts";
import { keystroke } from "../../cli/bench/keystroke.ts";
import type { LoadMemberPlan, RoomCounts, LoadRoomPlan } from "./plan.ts";
import { RoomJudge, type OrderedEdits } from "./room-judge.ts";
import { type LoadSocket, openSocket } from "./web-socket.ts";
import { Measured } from "./measured.ts";

type Member = {
  readonly index: number;
  readonly plan: LoadMemberPlan;
  socket: LoadSocket;
  channel: number;
  writer: Writer | undefined;
  /** Last shown edit of each writer, committed or tentative. */ readonly shown: number[];
};
type Writer = {
  readonly index: number;
  readonly member: Member;
  readonly yjsClient: number;
  sent: number;
  acked: number;
  sentAt: number[];
};

/** Frames that are kept because other members of the room will receive them. */
const DECODED_MAX = 256;

export class RoomLoad {
  readonly room: RoomId;
  readonly writers: Writer[] = [];
  measured = new Measured();
  /** Called after a frame that acks edits of the writer. */
  onAcked: (writer: Writer) => void = () => {};
  readonly #judge = new RoomJudge();
  readonly #members: Member[] = [];
  /** By writer. */
  readonly #clients: ClientId[] = [];
  readonly #decoded = new Map<Seq, { readonly bytes: Buffer; readonly stretch: OrderedEdits }>();

  private constructor(room: RoomId) {
    this.room = room;
  }

  static async open(plan: LoadRoomPlan): Promise<RoomLoad> {
    const load = new RoomLoad(plan.room);
    for (const member of plan.members) await load.#join(member);
    return load;
  }

  send(writer: Writer): void {
    const { member } = writer;
    writer.sent += 1;
    const payload = keystroke(writer.yjsClient, writer.sent);
    const frame = encodeFrame({
      type: "edit",
      channel: member.channel,
      counter: writer.sent,
      ackedThrough: writer.acked,
      parentSeq: this.#judge.positionOf(member.index) as Seq,
      payload,
    });
    writer.sentAt.push(performance.now());
    member.socket.send(frame);
  }

  ping(): void {
    for (const { socket } of this.#members) socket.send(encodeFrame({ type: "ping", nonce: 1 }));
  }

  close(): void {
    for (const { socket } of this.#members) socket.close();
  }

  everywhere(): number {
    return this.#judge.everywhere();
  }

  /** Whether all members have all sent edits. */
  isSettled(): boolean {
    const sent = this.writers.reduce((sum, writer) => sum + writer.sent, 0);
    return this.#judge.everywhere() === sent && this.writers.every((writer) => writer.acked === writer.sent);
  }

  counts(): RoomCounts {
    return {
      room: this.room,
      head: this.#judge.head,
      distinctEdits: this.#judge.distinctEdits(),
      sentByWriter: this.writers.map(({ sent }) => sent),
      members: this.#members.length,
    };
  }

  #join(plan: LoadMemberPlan): Promise<void> {
    return new Promise((resolve, reject) => {
      const index = this.#members.length;
      const receiveEnd = (reason: string): never => {
        throw new Error(`member ${index} of ${this.room}: ${reason}`);
      };
      const receiveFrame = (bytes: Uint8Array): void => {
        if (bytes[0] === FrameType.committed) return this.#receiveCommitted(this.#members[index]!, bytes);
        const frame = decodeFrame(bytes);
        if (frame?.type !== "joined") return this.#receiveOther(this.#members[index], frame);
        this.#addMember(plan, frame, socket);
        resolve();
      };
      let socket: LoadSocket;
      openSocket(new URL(plan.gateway), { receiveFrame, receiveEnd }).then((opened) => {
        socket = opened;
        socket.send(encodeFrame({ type: "hello", version: PROTOCOL_VERSION, token: plan.token, agent: "bench" }));
        socket.send(encodeFrame({ type: "join", request: 1, room: this.room, clientKey: plan.clientKey, position: START }));
      }, reject);
    });
  }

  #addMember(plan: LoadMemberPlan, { channel, client }: Frame & { type: "joined" }, socket: LoadSocket): void {
    const member: Member = { index: this.#members.length, plan, socket, channel, writer: undefined, shown: [] };
    this.#members.push(member);
    this.#judge.addMember();
    if (!plan.writes) return;
    member.writer = { index: this.writers.length, member, yjsClient: this.writers.length + 1, sent: 0, acked: 0, sentAt: [] };
    this.writers.push(member.writer);
    this.#judge.addWriter(client);
    this.#clients.push(client);
  }

  #receiveOther(member: Member | undefined, frame: Frame | UnknownFrame | undefined): void {
    switch (frame?.type) {
      case "ack":
        return this.#receiveAck(member!, frame);
      case "tentative": // The committed edit follows.
        return this.#show(member!, this.#clients.indexOf(frame.edit.client), frame.edit.counter, performance.now());
      case "welcome":
      case "pong":
      case "saving":
      case "degraded":
      case "acked-through":
      case "presence-delta":
      case "mode":
        return;
      default:
        throw new Error(`${this.room}: an unexpected frame: ${JSON.stringify(frame)}`);
    }
  }

  #receiveAck(member: Member, { seq, counter, count }: Frame & { type: "ack" }): void {
    if (counter + count - 1 <= member.writer!.acked) return; // The answer to a repeat that the gateway sent to a new owner.
    const writer = member.writer!.index;
    this.#receiveStretch(member, {
      firstSeq: seq,
      writers: Array<number>(count).fill(writer),
      counters: Array.from({ length: count }, (_, index) => counter + index),
    });
  }

  #receiveCommitted(member: Member, bytes: Uint8Array): void {
    const input = decoding.createDecoder(bytes);
    input.pos = 1;
    readNumber(input); // channel
    const { firstSeq } = readRange(input);
    let decoded = this.#decoded.get(firstSeq);
    if (decoded === undefined || !decoded.bytes.equals(bytes)) {
      const frame = decodeFrame(bytes);
      if (frame?.type !== "committed") throw new Error(`${this.room}: a committed frame cannot be decoded`);
      decoded = { bytes: Buffer.from(bytes), stretch: this.#judge.stretchOf(frame.edits) };
      this.#keep(firstSeq, decoded);
    }
    this.#receiveStretch(member, decoded.stretch);
  }

  #keep(firstSeq: Seq, decoded: { bytes: Buffer; stretch: OrderedEdits }): void {
    this.#decoded.set(firstSeq, decoded);
    if (this.#decoded.size > DECODED_MAX) this.#decoded.delete(this.#decoded.keys().next().value!);
  }

  #receiveStretch(member: Member, stretch: OrderedEdits): void {
    const now = performance.now();
    this.#judge.receive(member.index, stretch);
    let ackedOwn = false;
    for (let index = 0; index < stretch.writers.length; index++) {
      const writer = this.writers[stretch.writers[index]!]!;
      const counter = stretch.counters[index]!;
      const sentAt = writer.sentAt[counter - 1]!;
      if (writer.member !== member) {
        this.measured.receiveSeen(sentAt, now);
        this.#show(member, writer.index, counter, now);
      } else {
        writer.acked = counter;
        ackedOwn = true;
        this.measured.receiveAcked(sentAt, now);
      }
    }
    if (ackedOwn) this.onAcked(member.writer!);
  }

  #show(member: Member, writer: number, counter: number, now: number): void {
    if (counter <= (member.shown[writer] ?? 0)) return;
    member.shown[writer] = counter;
    this.measured.receiveShown(this.writers[writer]!.sentAt[counter - 1]!, now);
  }
}
