/** A participant as plain as can be: shows fields of its own, and keeps what it is told of everybody else's. */

import { WireClient } from "../../gateway/testing/wire-client.ts";
import type { ClientId } from "../../shared/ids.ts";
import type { Participant, PresenceField } from "../../shared/wire/presence.ts";

export type Seen = { participant: Participant; readonly fields: Map<string, Uint8Array> };

export class Onlooker {
  readonly client: ClientId;
  readonly #line: WireClient;
  readonly #channel: number;
  #seen = new Map<number, Seen>();
  #frames = 0;

  private constructor(line: WireClient, channel: number, client: ClientId) {
    this.#line = line;
    this.#channel = channel;
    this.client = client;
  }

  static async enter(url: string, token: string, room: string, clientKey: string): Promise<Onlooker> {
    const line = await WireClient.greet(`${url}/v1/connect`, token);
    const { channel, client } = await line.join(room, clientKey);
    return new Onlooker(line, channel, client);
  }

  get line(): WireClient {
    return this.#line;
  }

  /** How many frames of presence news have come. */
  get newsFrames(): number {
    return this.#line.received.filter(({ type }) => type === "presence-news").length;
  }

  show(...fields: PresenceField[]): void {
    this.#line.send({ type: "presence", channel: this.#channel, fields });
  }

  leave(): void {
    this.#line.close();
  }

  /** Everybody in the room by name, as this one is told. */
  names(): string[] {
    return [...this.#everybody().values()].map(({ participant }) => participant.name).sort();
  }

  of(client: ClientId): Seen | undefined {
    return [...this.#everybody().values()].find(({ participant }) => participant.client === client);
  }

  field(client: ClientId, name: string): Uint8Array | undefined {
    return this.of(client)?.fields.get(name);
  }

  #everybody(): ReadonlyMap<number, Seen> {
    const { received } = this.#line;
    for (; this.#frames < received.length; this.#frames++) {
      const frame = received[this.#frames]!;
      if (frame.type !== "presence-news") continue;
      const { whole, present, gone, states } = frame.news;
      if (whole) this.#seen = new Map();
      for (const number of gone) this.#seen.delete(number);
      for (const participant of present) this.#seen.set(participant.number, { participant, fields: this.#seen.get(participant.number)?.fields ?? new Map() });
      for (const { number, fields } of states) {
        for (const { name, value } of fields) {
          if (value.byteLength === 0) this.#seen.get(number)?.fields.delete(name);
          else this.#seen.get(number)?.fields.set(name, value);
        }
      }
    }
    return this.#seen;
  }
}
