/**
 * What a client and its server say to each other of one room: it is asked for, joined, turned away, left and asked for
 * anew, and what comes meanwhile goes to the part that knows about it. Rules as for `room-session.ts`, whose half of the
 * decisions this is.
 */

import { assertNever } from "../../shared/assert.ts";
import type { Millis } from "../../shared/ids.ts";
import type { LeftReason } from "../../shared/wire/frames.ts";
import type { CatchingUp, Next } from "./catching-up.ts";
import type { EditFeed } from "./edit-feed.ts";
import type { EditSender } from "./edit-sender.ts";
import type { Keeping } from "../keeping/keeping.ts";
import type { Joined, Membership } from "./membership.ts";
import type { Outbox } from "./outbox.ts";
import type { Chance, SnapshotAnswer } from "../ports.ts";
import { rightsRevoked, roomDeleted, roomUnavailable } from "./problems.ts";
import type { Line, RoomEffect, RoomFrame } from "./room-messages.ts";
import type { WriterKey } from "../keeping/writer-key.ts";

export type DialogueOptions = { readonly joinMsMax: number; readonly joinJitterMs: number };

/** Of a room's session. */
export type DialogueParts = {
  readonly outbox: Outbox;
  readonly feed: EditFeed;
  readonly sender: EditSender;
  readonly catchingUp: CatchingUp;
  readonly keeping: Keeping;
  readonly membership: Membership;
  readonly writer: WriterKey;
};

export class RoomDialogue {
  readonly #options: DialogueOptions;
  readonly #chance: Chance;
  readonly #outbox: Outbox;
  readonly #feed: EditFeed;
  readonly #sender: EditSender;
  readonly #catchingUp: CatchingUp;
  readonly #keeping: Keeping;
  readonly #membership: Membership;
  readonly #writer: WriterKey;

  constructor(options: DialogueOptions, { outbox, feed, sender, catchingUp, keeping, membership, writer }: DialogueParts, chance: Chance) {
    this.#options = options;
    this.#chance = chance;
    this.#outbox = outbox;
    this.#feed = feed;
    this.#sender = sender;
    this.#catchingUp = catchingUp;
    this.#keeping = keeping;
    this.#membership = membership;
    this.#writer = writer;
  }

  /** `before`: what the last join gave, where it holds until the new one. */
  join(line: Line, before: Joined | undefined, now: Millis, effects: RoomEffect[]): void {
    this.#membership.ask(line, before, (now + this.#options.joinMsMax) as Millis);
    effects.push({ kind: "join", clientKey: this.#writer.key, position: this.#catchingUp.joinFrom });
  }

  leave(now: Millis, effects: RoomEffect[]): void {
    const { joined, heldChannel } = this.#membership;
    if (joined !== undefined) this.#writer.heard(now);
    if (heldChannel !== undefined) effects.push({ kind: "send", frame: { type: "leave", channel: heldChannel } });
    this.end("out");
  }

  /** Nothing comes any more. `offline`: until there is a line again. */
  end(kind: "out" | "refused" | "offline"): void {
    this.#membership.end(kind);
    this.#catchingUp.lost();
  }

  receiveFrame(frame: RoomFrame, now: Millis, effects: RoomEffect[]): void {
    switch (frame.type) {
      case "joined":
        return this.#receiveJoined(frame, now, effects);
      case "join-refused":
        return this.#receiveJoinRefused(frame, now, effects);
      case "left":
        return this.#receiveLeft(frame.reason, now, effects);
      case "committed":
      case "ack":
        if (this.#membership.joined !== undefined) {
          this.#rejoinIf(this.#catchingUp.receiveSequenced(frame, this.#feed.client, now, effects), now, effects);
        }
        return this.#deliveredSoFar(now, effects);
      case "acked-through":
        this.#outbox.receiveAck(frame.counter, now);
        return;
      case "nack":
        return this.#sender.receiveNack(frame, now, effects);
      case "resync-required":
        if (this.#membership.live !== undefined) this.#catchingUp.receiveResyncRequired(frame.reason, now, effects);
        return;
      case "tentative":
        return this.#feed.receiveTentative(frame.edit, now, effects);
      case "saving":
        return this.#feed.receiveSaving(frame.state, now);
      case "presence-news":
      case "presence-again":
      case "mode":
      case "board":
      case "own-rank":
        return;
      default:
        assertNever(frame);
    }
  }

  receiveSnapshot(answer: SnapshotAnswer, now: Millis, effects: RoomEffect[]): void {
    if (this.#membership.live !== undefined) this.#rejoinIf(this.#catchingUp.receiveSnapshot(answer, now, effects), now, effects);
  }

  /** Asks for what is missing, once it is time to. */
  repair(now: Millis, effects: RoomEffect[]): void {
    const { live } = this.#membership;
    if (live !== undefined) this.#rejoinIf(this.#catchingUp.repair(live.joined.channel, now, effects), now, effects);
  }

  #receiveJoined({ channel, client, head, rights }: RoomFrame & { type: "joined" }, now: Millis, effects: RoomEffect[]): void {
    if (!this.#membership.receiveJoined({ channel, head })) return;
    this.#feed.joined(client, now);
    this.#sender.joined({ client, rights }, now, effects);
    this.#rejoinIf(this.#catchingUp.joined(head, effects), now, effects);
  }

  #receiveJoinRefused({ reason, retryAfterMs, message }: RoomFrame & { type: "join-refused" }, now: Millis, effects: RoomEffect[]): void {
    const { line, isJoining } = this.#membership;
    if (line === undefined || !isJoining) return;
    if (retryAfterMs > 0) {
      const retryInMs = retryAfterMs + this.#chance.unit() * this.#options.joinJitterMs;
      const isNews = this.#membership.putOff?.reason !== reason;
      this.#membership.wait(line, { reason, message, until: (now + retryInMs) as Millis });
      if (isNews) effects.push({ kind: "problem", problem: roomUnavailable(reason, message, retryInMs) });
      return this.#catchingUp.lost();
    }
    if (reason === "deleted") return this.#receiveDeleted(effects);
    this.end("refused");
    effects.push({ kind: "refused", refusal: { kind: "room-refused", reason, message } });
  }

  #receiveLeft(reason: LeftReason, now: Millis, effects: RoomEffect[]): void {
    const { line } = this.#membership;
    if (line === undefined) return;
    switch (reason) {
      case "asked":
        return;
      case "rights-revoked":
        this.end("refused");
        effects.push({ kind: "refused", refusal: rightsRevoked() });
        return;
      case "deleted":
        return this.#receiveDeleted(effects);
      case "rights-changed":
        this.end("offline");
        return this.join(line, undefined, now, effects);
      default:
        assertNever(reason);
    }
  }

  /** Nothing that this device has of it may bring it back. */
  #receiveDeleted(effects: RoomEffect[]): void {
    this.end("refused");
    this.#keeping.forget(effects);
    effects.push({ kind: "refused", refusal: roomDeleted() });
  }

  #deliveredSoFar(now: Millis, effects: RoomEffect[]): void {
    const { live } = this.#membership;
    if (live === undefined) return;
    this.#catchingUp.deliveredSoFar(live.joined.head);
    this.repair(now, effects);
  }

  #rejoinIf(next: Next, now: Millis, effects: RoomEffect[]): void {
    const { live } = this.#membership;
    if (next === "rejoin" && live !== undefined) this.join(live.line, live.joined, now, effects);
  }
}
