/** Who is here, kept as people: told once for each change of the room, and to whom it may matter. */

import type { CoroomProvider, PresenceChange } from "@coroom/client";

import { type Person, personOf } from "../people.ts";

export type Crowd = {
  /** A view that goes along. */
  readonly people: ReadonlyMap<string, Person>;
  /** Somebody came, went or goes by another name. */
  onRoster(changed: () => void): void;
  /** What these show is another now; whoever is no longer among the people has gone. */
  onShown(changed: (ids: readonly string[]) => void): void;
};

export function crowdOf(provider: CoroomProvider): Crowd {
  const people = new Map<string, Person>();
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
    for (const tell of shownListeners) tell(ids);
    if (roster) for (const tell of rosterListeners) tell();
  });
  return { people, onRoster: (changed) => void rosterListeners.push(changed), onShown: (changed) => void shownListeners.push(changed) };
}
