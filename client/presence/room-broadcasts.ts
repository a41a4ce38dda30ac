/**
 * The entry point `@coroom/client/broadcasts`: messages of an application to everybody in a room, on the presence lane.
 * One field of this client holds its newest messages with their numbers, and receivers emit the numbers that they have
 * not seen. Lossy: a receiver that is away, or a client that sends more than the field holds, misses messages. A message
 * is received once and in its sender's order, also when the sender leaves and enters again: after messages 1 and 2 it
 * shows both again, and receivers emit neither. Participants who enter later do not receive it. Rules BRO1 to BRO11.
 *
 * @module @coroom/client/broadcasts
 */

import { assert } from "../../shared/assert.ts";
import type { ClientId } from "../../shared/ids.ts";
import type { PresenceField } from "../../shared/wire/presence.ts";
import type { RoomConnection } from "../room/room-connection-host.ts";
import type { RoomSessionInput } from "../room/room-messages.ts";
import type { YjsProvider } from "../yjs/yjs-provider.ts";
import { Events } from "../events.ts";
import { assertNotDestroyed, assertRoom } from "../options.ts";
import type { ClientWorld } from "../ports.ts";
import type { PresenceChange } from "./participants.ts";
import { BROADCASTS, type JsonOf, ownField } from "./presence-fields.ts";

/** Maximum bytes of the field, which shares the limit of this client's presence. */
const BYTES_MAX = 2_048;
const MESSAGES_MAX = 64;
/** Milliseconds after the last message until the field is removed. By then everybody present has received it. */
const SHOWN_MS = 3_000;
/** Maximum number of senders whose last number is known, beyond the number of participants: those that left. */
const LEFT_SENDERS_MAX = 2_000;

/** A message that another client sent. */
type Broadcast = {
  /** The sender, a key of `participants`. */
  readonly client: ClientId;
  /** The JSON value. Another client may send anything: check it. */
  readonly message: unknown;
};

/** Events of `RoomBroadcasts`, with the arguments of each listener. */
type BroadcastEvents = {
  /** A message arrived. Messages of one client arrive in its order. */
  message: [Broadcast];
};

/**
 * Content of the field: the number of its last message, and messages up to that number. `page`: a random number, because
 * a page that is loaded again may have the client id of the previous one, and counts from 1.
 */
type Shown = { readonly page: number; readonly last: number; readonly messages: readonly unknown[] };
/** What another participant shows. `sender`: who numbers the messages. */
type ShownByOther = Pick<Shown, "last" | "messages"> & { readonly sender: string };

/** Messages to everybody who is in the room now. They are not stored and may be lost. */
export function broadcastsOf<State extends object>(room: RoomConnection | YjsProvider<State>): RoomBroadcasts {
  assertRoom(room);
  return room.part(newBroadcasts);
}

const newBroadcasts = (room: RoomConnection, world: ClientWorld): RoomBroadcasts => new RoomBroadcasts(room, world);

/** Sends and receives the broadcasts of one room. `broadcastsOf` returns it. */
export class RoomBroadcasts {
  readonly #room: RoomConnection;
  readonly #clock: ClientWorld["clock"];
  readonly #events: Events<BroadcastEvents>;
  #shown: Shown;
  /** Number of the last message of each sender. The sender of the newest message is last. */
  readonly #received = new Map<string, number>();
  /** The room is joined, and the snapshot of its participants has not arrived yet. */
  #isEntering: boolean;
  /** The last delta was the snapshot that follows a join. */
  #hasJustEntered = false;
  #isEnded = false;
  #cancelRemoval = (): void => {};

  /** @internal Use `broadcastsOf`. */
  constructor(room: RoomConnection, { clock, chance, reportError }: Pick<ClientWorld, "clock" | "chance" | "reportError">) {
    this.#room = room;
    this.#clock = clock;
    this.#shown = { page: Math.floor(chance.unit() * 2 ** 32), last: 0, messages: [] };
    this.#events = new Events(reportError);
    this.#isEntering = room.participants.size === 0;
    for (const client of room.participants.keys()) this.#skip(client);
    room.on("presence", (change) => this.#receivePresence(change));
  }

  /**
   * Sends a JSON value to everybody in the room now, except this client. Throws if it is larger than 2,048 bytes. Of many
   * messages at once, the newest arrive: at most 64, and 2,048 bytes together. Throws after the room's `destroy()`.
   */
  send<Message>(message: Message & JsonOf<Message>): void {
    assertNotDestroyed(this.#isEnded, "send a broadcast");
    const { page } = this.#shown;
    const last = this.#shown.last + 1;
    let messages = [...this.#shown.messages, message].slice(-MESSAGES_MAX);
    const fieldOf = (): PresenceField => ownField(BROADCASTS, { page, last, messages });
    let field = fieldOf();
    while (field.value.byteLength > BYTES_MAX && messages.length > 1) {
      messages = messages.slice(1);
      field = fieldOf();
    }
    assert(
      field.value.byteLength <= BYTES_MAX,
      `cannot broadcast a message of more than ${BYTES_MAX} bytes. Keep large data in the document.`,
    );
    this.#shown = { page, last, messages };
    this.#room.show([field]);
    this.#cancelRemoval();
    this.#cancelRemoval = this.#clock.after(SHOWN_MS, () => this.#remove());
  }

  /** Calls the listener with each message. */
  on(name: "message", listener: (broadcast: Broadcast) => void): void {
    this.#events.on(name, listener);
  }

  /** Removes the listener. Without effect if it was not added. */
  off(name: "message", listener: (broadcast: Broadcast) => void): void {
    this.#events.off(name, listener);
  }

  /** @internal The room is left permanently. */
  end(): void {
    this.#isEnded = true;
    this.#cancelRemoval();
    this.#events.clear();
  }

  /** @internal For the room. */
  receiveInput(input: RoomSessionInput): void {
    if (input.kind !== "frame") return;
    if (input.frame.type === "joined") this.#isEntering = true;
    if (input.frame.type !== "presence-delta") return;
    this.#hasJustEntered = this.#isEntering && input.frame.delta.snapshot;
    if (this.#hasJustEntered) this.#isEntering = false;
  }

  #receivePresence({ entered, changed }: PresenceChange): void {
    for (const client of entered) {
      if (this.#hasJustEntered) this.#skip(client);
      else this.#receive(client);
    }
    for (const client of changed) this.#receive(client);
  }

  /** Messages from before are not for this client. */
  #skip(client: ClientId): void {
    const shown = this.#shownBy(client);
    if (shown !== undefined) this.#remember(shown);
  }

  #receive(client: ClientId): void {
    const shown = this.#shownBy(client);
    if (shown === undefined) return;
    const { sender, last, messages } = shown;
    const received = this.#received.get(sender) ?? 0;
    if (last <= received) return;
    this.#remember(shown);
    for (const message of messages.slice(received - last)) this.#events.emit("message", { client, message });
  }

  /** Each participant shows the messages of one sender, so of these none is forgotten. */
  #remember({ sender, last }: ShownByOther): void {
    this.#received.delete(sender);
    this.#received.set(sender, last);
    const [oldest] = this.#received.keys();
    if (oldest !== undefined && this.#received.size > LEFT_SENDERS_MAX + this.#room.participants.size) this.#received.delete(oldest);
  }

  /** Undefined: the participant shows no messages. Another client may show anything. */
  #shownBy(client: ClientId): ShownByOther | undefined {
    const participant = this.#room.participants.get(client);
    if (participant === undefined || participant.self) return undefined;
    const { page, last, messages } = (participant.fields[BROADCASTS] ?? {}) as Partial<Record<keyof Shown, unknown>>;
    if (!Number.isSafeInteger(last) || !Array.isArray(messages)) return undefined;
    const sender = Number.isSafeInteger(page) ? `${page as number} ${participant.user}` : client; // Clients up to 0.2.0 show no page.
    return { sender, last: last as number, messages: messages as unknown[] };
  }

  #remove(): void {
    this.#shown = { ...this.#shown, messages: [] };
    this.#room.show([ownField(BROADCASTS, undefined)]);
  }
}
