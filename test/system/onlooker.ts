/** A minimal presence client: sets its own fields, keeps the fields that it receives, and reconnects. */

import { setTimeout as sleep } from "node:timers/promises";

import type { ClientId } from "../../shared/ids.ts";
import type { RoomMode } from "../../shared/wire/frames.ts";
import type { ParticipantEntry, PresenceField } from "../../shared/wire/presence.ts";
import { WireClient } from "../../gateway/testing/wire-client.ts";

export type Seen = { readonly participant: ParticipantEntry; readonly fields: Map<string, Uint8Array> };

/** Addresses and identity. The same client key is the same participant. */
type Ticket = { readonly urls: readonly string[]; readonly token: string; readonly room: string; readonly clientKey: string };

const RETRY_MS = 50;

export class Onlooker {
  readonly #ticket: Ticket;
  readonly #shows = new Map<string, Uint8Array>();
  #connection: WireClient;
  #channel = 0;
  #client: ClientId | undefined;
  #seen = new Map<number, Seen>();
  #framesRead = 0;
  #gone = false;
  /** Receives the participants after each delta, so that nobody misses a participant that disappears only briefly. */
  onDelta: (seen: ReadonlyMap<number, Seen>) => void = () => {};

  private constructor(ticket: Ticket, connection: WireClient) {
    this.#ticket = ticket;
    this.#connection = connection;
  }

  /** Connects to the first of `urls`, and after a lost connection to the next. */
  static async enter(ticket: Ticket): Promise<Onlooker> {
    const onlooker = new Onlooker(ticket, await WireClient.greet(`${ticket.urls[0]!}/v1/connect`, ticket.token));
    await onlooker.#join();
    return onlooker;
  }

  get client(): ClientId {
    return this.#client!;
  }

  get isConnected(): boolean {
    return this.#connection.closed === undefined;
  }

  get channel(): number {
    return this.#channel;
  }

  get connection(): WireClient {
    return this.#connection;
  }

  show(...fields: PresenceField[]): void {
    for (const { name, value } of fields) this.#shows.set(name, value);
    if (this.isConnected) this.#connection.send({ type: "presence", channel: this.#channel, fields });
  }

  leave(): void {
    this.#gone = true;
    this.#connection.close();
  }

  /** Reconnects over the other gateways until it leaves. */
  async stay(): Promise<void> {
    for (let turn = 1; !this.#gone; turn++) {
      await this.#connection.end().catch(() => {}); // The wait for a close timed out.
      if (this.isConnected || this.#gone) continue;
      const { urls, token } = this.#ticket;
      try {
        this.#connection = await WireClient.greet(`${urls[turn % urls.length]!}/v1/connect`, token);
        await this.#join();
      } catch {
        await sleep(RETRY_MS); // The gateway is not there, or failed during the join.
      }
    }
  }

  /** All participants by name, as this client knows them. */
  names(): string[] {
    return [...this.#everybody().values()].map(({ participant }) => participant.name).sort();
  }

  participant(client: ClientId): ParticipantEntry | undefined {
    return this.#of(client)?.participant;
  }

  field(client: ClientId, name: string): Uint8Array | undefined {
    return this.#of(client)?.fields.get(name);
  }

  #of(client: ClientId): Seen | undefined {
    return [...this.#everybody().values()].find(({ participant }) => participant.client === client);
  }

  async #join(): Promise<void> {
    this.#framesRead = 0;
    const { channel, client } = await this.#connection.join(this.#ticket.room, this.#ticket.clientKey);
    this.#channel = channel;
    this.#client = client;
    if (this.#shows.size > 0) this.show(...[...this.#shows].map(([name, value]) => ({ name, value })));
  }

  /** By participant: the value of the field, as this client knows it. */
  shown(name: string): Map<ClientId, Uint8Array> {
    const shown = new Map<ClientId, Uint8Array>();
    for (const { participant, fields } of this.#everybody().values()) {
      const value = fields.get(name);
      if (value !== undefined) shown.set(participant.client, value);
    }
    return shown;
  }

  /** The modes that the gateway announced, in order. Repeats are omitted. */
  modes(): RoomMode[] {
    const modes = this.#connection.received.flatMap((frame) => (frame.type === "mode" ? [frame.mode] : []));
    return modes.filter((mode, index) => mode !== modes[index - 1]);
  }

  edit(counter: number, payload: string): void {
    this.#connection.edit(this.#channel, counter, payload);
  }

  #everybody(): ReadonlyMap<number, Seen> {
    const { received } = this.#connection;
    for (; this.#framesRead < received.length; this.#framesRead++) {
      const frame = received[this.#framesRead]!;
      if (frame.type !== "presence-delta") continue;
      const { snapshot, present, gone, states } = frame.delta;
      if (snapshot) this.#seen = new Map();
      for (const number of gone) this.#seen.delete(number);
      for (const participant of present)
        this.#seen.set(participant.number, { participant, fields: this.#seen.get(participant.number)?.fields ?? new Map() });
      for (const { number, fields } of states) {
        for (const { name, value } of fields) {
          if (value.byteLength === 0) this.#seen.get(number)?.fields.delete(name);
          else this.#seen.get(number)?.fields.set(name, value);
        }
      }
      this.onDelta(this.#seen);
    }
    return this.#seen;
  }
}
