/** Keeps the people in the room, and notifies listeners once per presence change. */

import type { CoroomProvider, PresenceChange } from "@coroom/client";

import { type ShownPerson, personOf } from "../people.ts";

export type RoomPeople = {
  /** A live view. */
  readonly people: ReadonlyMap<string, ShownPerson>;
  /** Notifies when a person joins, leaves or changes name, role or rights. */
  onRoster(changed: () => void): void;
  /** Notifies with the ids whose presence changed. An id that is not in `people` has left. */
  onShown(changed: (ids: readonly string[]) => void): void;
};

export function peopleIn(provider: CoroomProvider): RoomPeople {
  const people = new Map<string, ShownPerson>();
  const [rosterListeners, shownListeners]: [(() => void)[], ((ids: readonly string[]) => void)[]] = [[], []];

  provider.on("presence", ({ entered, changed, left }: PresenceChange) => {
    let roster = entered.length + left.length > 0;
    for (const id of left) people.delete(id);
    for (const id of [...entered, ...changed]) {
      const participant = provider.participants.get(id);
      if (participant === undefined) continue;
      const [before, person] = [people.get(id), personOf(participant)];
      roster ||= before === undefined || before.name !== person.name || before.role !== person.role || before.canWrite !== person.canWrite;
      people.set(id, person);
    }
    const ids = [...left, ...entered, ...changed];
    for (const notify of shownListeners) notify(ids);
    if (roster) for (const notify of rosterListeners) notify();
  });
  return { people, onRoster: (changed) => void rosterListeners.push(changed), onShown: (changed) => void shownListeners.push(changed) };
}
