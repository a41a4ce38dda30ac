/** A user with one connection who visits one room after the other: joins it, edits its document and leaves. */

import { setTimeout as sleep } from "node:timers/promises";

import * as Y from "yjs";

import { type ClientId, type ClientKey, type RoomId, START } from "../../shared/ids.ts";
import { decodeFrame } from "../../shared/wire/codec.ts";
import { PROTOCOL_VERSION, type ServerFrame } from "../../shared/wire/frames.ts";
import { sendFrame } from "./enter.ts";
import { type LoadSocket, openSocket } from "./web-socket.ts";

const STEP_MS_MAX = 60_000;
const RETRIES_MAX = 100;
const TEXT = "A sentence that a participant writes into the document. ";

export class RoomVisitor {
  readonly user: string;
  #socket: LoadSocket | undefined;
  #onFrame: (frame: ServerFrame) => void = () => {};

  constructor(user: string) {
    this.user = user;
  }

  async connect(url: string, token: string): Promise<void> {
    this.#socket = await openSocket(new URL(url), {
      receiveFrame: (bytes) => this.#onFrame(decodeFrame(bytes) as ServerFrame),
      receiveEnd: (reason) => {
        throw new Error(`${this.user} was disconnected: ${reason}`);
      },
    });
    sendFrame(this.#socket, { type: "hello", version: PROTOCOL_VERSION, token, agent: "bench" });
  }

  /** Resolves when all edits are acknowledged. */
  async visit(room: RoomId, edits: number): Promise<void> {
    const { channel, client } = await this.#join(room);
    const doc = new Y.Doc();
    const acknowledged = this.#frame(`the acks of its edits in ${room}`, (frame) => {
      if (frame.type === "nack") throw new Error(`an edit of ${this.user} in ${room} was refused: ${frame.reason}`);
      if (frame.type === "ack") return frame.channel === channel && frame.counter + frame.count > edits ? true : undefined;
      if (frame.type !== "committed" || frame.channel !== channel) return undefined;
      return frame.edits.edits.some((edit) => edit.client === client && edit.counter === edits) ? true : undefined;
    });
    for (let counter = 1; counter <= edits; counter++) {
      const before = Y.encodeStateVector(doc);
      doc.getText("text").insert(0, TEXT);
      sendFrame(this.#socket!, {
        type: "edit",
        channel,
        counter,
        ackedThrough: 0,
        parentSeq: START.seq,
        payload: Y.encodeStateAsUpdate(doc, before),
      });
    }
    await acknowledged;
    sendFrame(this.#socket!, { type: "leave", channel });
  }

  close(): void {
    this.#socket?.close();
  }

  async #join(room: RoomId): Promise<{ readonly channel: number; readonly client: ClientId }> {
    for (let tries = 1; tries <= RETRIES_MAX; tries++) {
      const answer = this.#frame(`an answer to the join of ${room}`, (frame) =>
        (frame.type === "joined" || frame.type === "join-refused") && frame.request === tries ? frame : undefined,
      );
      sendFrame(this.#socket!, { type: "join", request: tries, room, clientKey: `key-${this.user}` as ClientKey, position: START });
      const frame = await answer;
      if (frame.type === "joined") return frame;
      await sleep(frame.retryAfterMs);
    }
    throw new Error(`${this.user} was not admitted to ${room}`);
  }

  #frame<Found>(what: string, find: (frame: ServerFrame) => Found | undefined): Promise<Found> {
    return new Promise((settle, reject) => {
      const timer = setTimeout(() => reject(new Error(`${this.user} waited too long for ${what}`)), STEP_MS_MAX);
      this.#onFrame = (frame) => {
        try {
          const found = find(frame);
          if (found === undefined) return;
          clearTimeout(timer);
          settle(found);
        } catch (error) {
          reject(error as Error);
        }
      };
    });
  }
}
