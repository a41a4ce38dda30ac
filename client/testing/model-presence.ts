/**
 * A minimal model of the server's contract for one room's presence: every participant receives each change at once, and
 * a new participant receives a snapshot.
 */

import type { ClientId, UserId } from "../../shared/ids.ts";
import type { ParticipantEntry, ParticipantNumber, PresenceField, PresenceDelta, PresenceState } from "../../shared/wire/presence.ts";

const NO_NEWS: PresenceDelta = { snapshot: false, present: [], gone: [], states: [] };

export class ModelPresence {
  readonly #present = new Map<ClientId, ParticipantEntry>();
  readonly #fields = new Map<ParticipantNumber, Map<string, Uint8Array>>();
  #lastNumber = 0;

  get snapshot(): PresenceDelta {
    const states = [...this.#fields].map(([number, fields]): PresenceState => ({
      number,
      fields: [...fields].map(([name, value]) => ({ name, value })),
    }));
    return { snapshot: true, present: [...this.#present.values()], gone: [], states: states.filter(({ fields }) => fields.length > 0) };
  }

  /** A participant that is present keeps its number. */
  enter(client: ClientId, more: Partial<ParticipantEntry> = {}): PresenceDelta {
    const before = this.#present.get(client);
    const participant: ParticipantEntry = {
      number: before?.number ?? ++this.#lastNumber,
      client,
      user: `user of ${client}` as UserId,
      name: client,
      canWrite: true,
      spectator: false,
      ...before,
      ...more,
    };
    this.#present.set(client, participant);
    if (before === undefined) this.#fields.set(participant.number, new Map());
    return { ...NO_NEWS, present: [participant] };
  }

  leave(client: ClientId): PresenceDelta {
    const { number } = this.#present.get(client)!;
    this.#present.delete(client);
    this.#fields.delete(number);
    return { ...NO_NEWS, gone: [number] };
  }

  show(client: ClientId, fields: readonly PresenceField[]): PresenceDelta {
    const { number } = this.#present.get(client)!;
    const shown = this.#fields.get(number)!;
    for (const { name, value } of fields) {
      if (value.byteLength === 0) shown.delete(name);
      else shown.set(name, value);
    }
    return { ...NO_NEWS, states: [{ number, fields }] };
  }

  has(client: ClientId): boolean {
    return this.#present.has(client);
  }

  /** A new owner assigns new numbers. */
  renumber(): void {
    const [before, fields] = [[...this.#present.values()].reverse(), new Map(this.#fields)];
    this.#fields.clear();
    for (const participant of before) {
      const number = ++this.#lastNumber;
      this.#present.set(participant.client, { ...participant, number });
      this.#fields.set(number, fields.get(participant.number)!);
    }
  }
}
