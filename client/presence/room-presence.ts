/**
 * One room's presence on its own lane beside the edits: hears what the room session hears, keeps who is there, says
 * what this client shows. Deterministic. Rules RPR1 to RPR11.
 *
 * It repeats nothing and times nobody out: the server knows who is there, and tells it whole after each join.
 */

import type { ClientId, Millis } from "../../shared/ids.ts";
import type { Channel, ClientFrame, RoomMode } from "../../shared/wire/frames.ts";
import type { PresenceField } from "../../shared/wire/presence.ts";
import type { FramePace } from "../connection/frame-pace.ts";
import { OwnPresence, type OwnPresenceOptions } from "./own-presence.ts";
import { type Merged, type Participant, Participants, type PresenceChange } from "./participants.ts";
import { type Problem, presenceTooLarge } from "../room/problems.ts";
import type { Line, RoomFrame, RoomInput } from "../room/room-messages.ts";

/** This client shows something else. */
export type ShowInput = { kind: "show"; fields: readonly PresenceField[] };
export type PresenceInput = RoomInput | ShowInput;

/** `participants`: as the server counts them. `shed`: 0, or how much is left out under pressure. */
export type ModeFacts = {
  readonly mode: RoomMode;
  readonly participants: number;
  readonly presencePerSecond: number;
  readonly shed: number;
};

export type PresenceEffect =
  | { kind: "send"; frame: ClientFrame }
  /** Somebody came, went or is another now. */
  | { kind: "tell-participants" }
  | { kind: "tell-presence"; change: PresenceChange }
  | { kind: "tell-mode"; mode: ModeFacts }
  | { kind: "problem"; problem: Problem };

export type PresenceOptions = {
  readonly own: OwnPresenceOptions;
  /** Without a line the others are shown for so long, so that nobody flickers in a quick reconnect. */
  readonly remembersMs: number;
};

type State =
  | { readonly kind: "out" }
  /** `until`: whoever was there may be gone by then. */
  | { readonly kind: "away"; readonly until: Millis }
  | { readonly kind: "in"; readonly channel: Channel; readonly client: ClientId };

export class RoomPresence {
  readonly #options: PresenceOptions;
  readonly #own: OwnPresence;
  readonly #participants = new Participants();
  #state: State = { kind: "out" };
  #client: ClientId | undefined;
  /** The line's that was told of last. */
  #pace: FramePace | undefined;
  #mode: ModeFacts | undefined;

  constructor(options: PresenceOptions) {
    this.#options = options;
    this.#own = new OwnPresence(options.own);
  }

  get participants(): ReadonlyMap<ClientId, Participant> {
    return this.#participants.all;
  }

  /** Undefined until the server has told it. */
  get mode(): ModeFacts | undefined {
    return this.#mode;
  }

  /** When a tick is next needed. */
  dueAt(now: Millis): Millis | undefined {
    if (this.#state.kind === "in") return this.#own.dueAt(now);
    return this.#state.kind === "away" ? this.#state.until : undefined;
  }

  receive(input: PresenceInput, now: Millis): PresenceEffect[] {
    const effects: PresenceEffect[] = [];
    switch (input.kind) {
      case "show":
        this.#receiveShow(input.fields, effects);
        return effects; // Said with the next tick: what is set at once goes out together.
      case "leave":
        this.#own.giveTurnBack();
        this.#state = { kind: "out" };
        tell(this.#participants.forgetAll(), effects);
        return effects;
      case "line-lost":
        this.#lose(now);
        return effects;
      case "frame":
        this.#receiveFrame(input.frame, now, effects);
        break;
      case "tick":
        this.#receiveTick(now, effects);
        break;
      case "line-open":
        this.#receiveLine(input, effects);
        return effects;
      case "enter":
      case "edit":
      case "snapshot":
      case "restored":
      case "kept":
      case "keep-failed":
      case "store-lost":
        return effects;
    }
    return effects;
  }

  #receiveLine({ limits, presencePace }: Line, effects: PresenceEffect[]): void {
    if (presencePace === this.#pace) return; // A room that is left and entered again is told of the line again.
    this.#pace = presencePace;
    this.#own.receiveLine({ pace: presencePace, bytesMax: limits.presenceBytesMax, fieldsMax: limits.presenceFieldsMax });
    if (this.#own.isTooLarge) effects.push({ kind: "problem", problem: presenceTooLarge(this.#own.bytesMax) });
  }

  #receiveShow(fields: readonly PresenceField[], effects: PresenceEffect[]): void {
    if (!this.#own.set(fields)) effects.push({ kind: "problem", problem: presenceTooLarge(this.#own.bytesMax) });
    tell(this.#participants.selfIs(this.#client, this.#own.values), effects);
  }

  #receiveFrame(frame: RoomFrame, now: Millis, effects: PresenceEffect[]): void {
    switch (frame.type) {
      case "joined":
        this.#state = { kind: "in", channel: frame.channel, client: frame.client };
        this.#client = frame.client;
        tell(this.#participants.selfIs(frame.client, this.#own.values), effects);
        this.#own.sayAgain();
        return this.#say(this.#state, now, effects);
      case "left":
      case "join-refused":
        return this.#lose(now);
      case "presence-news":
        if (this.#state.kind !== "in") return;
        tell(this.#participants.receive(frame.news), effects);
        if (frame.news.whole) this.#own.reconcile(this.#participants.valuesOf(this.#state.client));
        return this.#say(this.#state, now, effects);
      case "presence-again":
        return this.#own.receivePassedOver(); // Said with the tick that follows.
      case "mode": {
        const { mode, participants, presencePerSecond, shed } = frame;
        this.#mode = { mode, participants, presencePerSecond, shed };
        this.#own.receivePace(presencePerSecond);
        effects.push({ kind: "tell-mode", mode: this.#mode });
        return;
      }
      default: // Of the edits.
        return;
    }
  }

  #receiveTick(now: Millis, effects: PresenceEffect[]): void {
    if (this.#state.kind === "in") this.#say(this.#state, now, effects);
    if (this.#state.kind !== "away" || now < this.#state.until) return;
    this.#state = { kind: "out" };
    tell(this.#participants.forgetAll(), effects);
  }

  #lose(now: Millis): void {
    this.#own.giveTurnBack();
    if (this.#state.kind === "in") this.#state = { kind: "away", until: (now + this.#options.remembersMs) as Millis };
  }

  #say({ channel }: State & { kind: "in" }, now: Millis, effects: PresenceEffect[]): void {
    const fields = this.#own.takeDue(now);
    if (fields.length > 0) effects.push({ kind: "send", frame: { type: "presence", channel, fields } });
  }
}

function tell({ roster, entered, changed, left }: Merged, effects: PresenceEffect[]): void {
  if (roster) effects.push({ kind: "tell-participants" });
  if (entered.length + changed.length + left.length > 0) effects.push({ kind: "tell-presence", change: { entered, changed, left } });
}
