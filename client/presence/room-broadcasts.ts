/**
 * Messages of an application to everybody in a room, on the presence lane: one field of this client holds its newest
 * messages with their numbers, and receivers emit the numbers that they have not seen. Lossy: a receiver that is away,
 * or a client that sends more than the field holds, misses messages. A message is received once and in its sender's
 * order. Participants who enter later do not receive it. Rules BRO1 to BRO5.
 */

import { assert } from "../../shared/assert.ts";
import type { ClientId } from "../../shared/ids.ts";
import type { PresenceField } from "../../shared/wire/presence.ts";
import { Events } from "../events.ts";
import type { ClientWorld } from "../ports.ts";
import type { Participant, PresenceChange } from "./participants.ts";
import { ownField } from "./presence-fields.ts";

/** Name of the field. An application cannot use it. */
export const BROADCASTS = "coroom";

/** Maximum bytes of the field, which shares the limit of this client's presence. */
const BYTES_MAX = 2_048;
const MESSAGES_MAX = 64;
/** Milliseconds after the last message until the field is removed. By then everybody present has received it. */
const SHOWN_MS = 3_000;

export type Broadcast = { readonly client: ClientId; readonly message: unknown };

export type BroadcastEvents = { message: [Broadcast] };

type BroadcastsRoom = {
  readonly participants: ReadonlyMap<ClientId, Participant>;
  show(fields: readonly PresenceField[]): void;
};

/** Content of the field: the number of its last message, and messages up to that number. */
type Shown = { readonly last: number; readonly messages: readonly unknown[] };

export class RoomBroadcasts {
  readonly #room: BroadcastsRoom;
  readonly #clock: ClientWorld["clock"];
  readonly #events: Events<BroadcastEvents>;
  #shown: Shown = { last: 0, messages: [] };
  /** Number of the last message of each participant. */
  readonly #received = new Map<ClientId, number>();
  #cancelRemoval = (): void => {};

  constructor(room: BroadcastsRoom, { clock, reportError }: Pick<ClientWorld, "clock" | "reportError">) {
    this.#room = room;
    this.#clock = clock;
    this.#events = new Events(reportError);
  }

  /** Sends a JSON value to everybody in the room now, except this client. Throws if it is larger than 2 KB. */
  send(message: unknown): void {
    const last = this.#shown.last + 1;
    let messages = [...this.#shown.messages, message].slice(-MESSAGES_MAX);
    const fieldOf = (): PresenceField => ownField(BROADCASTS, { last, messages });
    let field = fieldOf();
    while (field.value.byteLength > BYTES_MAX && messages.length > 1) {
      messages = messages.slice(1);
      field = fieldOf();
    }
    assert(
      field.value.byteLength <= BYTES_MAX,
      `cannot broadcast a message of more than ${BYTES_MAX} bytes. Keep large data in the document.`,
    );
    this.#shown = { last, messages };
    this.#room.show([field]);
    this.#cancelRemoval();
    this.#cancelRemoval = this.#clock.after(SHOWN_MS, () => this.#remove());
  }

  on(name: "message", listener: (broadcast: Broadcast) => void): void {
    this.#events.on(name, listener);
  }

  off(name: "message", listener: (broadcast: Broadcast) => void): void {
    this.#events.off(name, listener);
  }

  /** @internal Called by the provider with the room's presence changes. */
  receivePresence({ entered, changed, left }: PresenceChange): void {
    for (const client of left) this.#received.delete(client);
    for (const client of entered) this.#received.set(client, this.#shownBy(client)?.last ?? 0);
    for (const client of changed) this.#receive(client);
  }

  /** @internal The room is left permanently. */
  end(): void {
    this.#cancelRemoval();
    this.#events.clear();
  }

  #receive(client: ClientId): void {
    const shown = this.#shownBy(client);
    const received = this.#received.get(client) ?? 0;
    if (shown === undefined || shown.last <= received) return;
    this.#received.set(client, shown.last);
    for (const message of shown.messages.slice(received - shown.last)) this.#events.emit("message", { client, message });
  }

  /** Undefined: the participant shows no messages. Another client may show anything. */
  #shownBy(client: ClientId): Shown | undefined {
    const participant = this.#room.participants.get(client);
    if (participant === undefined || participant.self) return undefined;
    const { last, messages } = (participant.fields[BROADCASTS] ?? {}) as Partial<Record<keyof Shown, unknown>>;
    return Number.isSafeInteger(last) && Array.isArray(messages) ? { last: last as number, messages: messages as unknown[] } : undefined;
  }

  #remove(): void {
    this.#shown = { last: this.#shown.last, messages: [] };
    this.#room.show([ownField(BROADCASTS, undefined)]);
  }
}
