/** Hooks that show the state of a room. Each renders again only if its result has changed. */

import { useCallback, useMemo, useSyncExternalStore } from "react";

import type { AwarenessState, JsonOf, Participant, Presence, PresenceOf, ProviderEvents, Refusal, StatusChange } from "@coroom/client";
import { useRooms } from "./coroom-provider.ts";
import { type OpenRoom, refusalOf, waitOf } from "./used-rooms.ts";

/** A room of `useRoom`, with any type of the awareness. */
export type AnyRoom = OpenRoom<never> | OpenRoom;
type Provider = OpenRoom["provider"];

/**
 * Joins a room as long as the component is mounted. All components below one `CoroomProvider` that use a room share its
 * document and provider. `name`: id of the room, 1 to 128 characters. `State`: fields of the awareness. Throws without a
 * `CoroomProvider` above.
 */
export function useRoom<State extends object = AwarenessState>(name: string): OpenRoom<State> {
  const rooms = useRooms();
  const hold = useCallback(() => rooms.hold(name), [rooms, name]);
  const find = useCallback(() => rooms.find(name), [rooms, name]);
  return useSyncExternalStore(hold, find, find) as OpenRoom as OpenRoom<State>;
}

/** `refusal`: the reason why the room is `stopped`. The other fields are those of the provider's event `status`. */
export type RoomStatusView = StatusChange & { readonly refusal?: Refusal };

/** The state of the connection to the room. */
export function useStatus(room: AnyRoom): RoomStatusView {
  return useValue(room, STATUS);
}

/** Whether this client's edits are safe, and how many are not. */
export type SavedView = Pick<Provider, "saved" | "stored" | "saving" | "unsavedEdits">;

/** Whether this client's edits are safe. */
export function useSaved(room: AnyRoom): SavedView {
  return useValue(room, SAVED);
}

/** A participant whose fields have types. A field is missing until its client has set it. */
export type ParticipantWith<Fields extends object> = Omit<Participant, "fields"> & { readonly fields: Readonly<Partial<Fields>> };

/** The participants of the room, including this client. */
export function useParticipants<Fields extends object = Record<string, unknown>>(room: AnyRoom): readonly ParticipantWith<Fields>[] {
  return useValue(room, PARTICIPANTS) as readonly Participant[] as readonly ParticipantWith<Fields>[];
}

/** Presence to set. Null removes a field; fields that are undefined or not named stay unchanged. */
export type PresenceToSet<Fields extends object> = { readonly [Field in keyof Fields]?: JsonOf<Fields[Field]> | null | undefined } & Pick<
  Presence,
  "cursor" | "selection" | "viewport"
>;

/** The presence of a room, and a function to set the own one. */
export type RoomPresenceView<Fields extends object> = {
  /** This client's own fields. */
  readonly own: Readonly<Partial<Fields>>;
  /** The other participants. */
  readonly others: readonly ParticipantWith<Fields>[];
  /** The same function in each render. Without `Fields`, it accepts any fields. */
  readonly set: string extends keyof Fields
    ? unknown extends Fields[keyof Fields]
      ? <Given extends object>(presence: PresenceOf<Given>) => void
      : (presence: PresenceToSet<Fields>) => void
    : (presence: PresenceToSet<Fields>) => void;
};

/** This client's presence, and the presence of others. `Fields`: the application's own fields. */
export function usePresence<Fields extends object = Record<string, unknown>>(room: AnyRoom): RoomPresenceView<Fields> {
  const participants = useParticipants<Fields>(room);
  const { provider } = room as OpenRoom;
  const set = useCallback((presence: Presence) => provider.presence.set(presence), [provider]) as RoomPresenceView<Fields>["set"];
  return useMemo(
    () => ({
      own: participants.find(({ self }) => self)?.fields ?? ({} as Partial<Fields>),
      others: participants.filter(({ self }) => !self),
      set,
    }),
    [participants, set],
  );
}

/** A value of the provider. `read` may return a new object each time; `isSame` decides whether it counts as changed. */
type LiveValue<Value extends object> = {
  readonly events: readonly (keyof ProviderEvents)[];
  readonly read: (provider: Provider) => Value;
  readonly isSame: (one: Value, other: Value) => boolean;
  readonly onServer: Value;
};

const STATUS: LiveValue<RoomStatusView> = {
  events: ["status", "refused"],
  read: (provider) => {
    const refusal = refusalOf(provider);
    return { status: provider.status, ...waitOf(provider), ...(refusal && { refusal }) };
  },
  isSame: (one, other) =>
    one.status === other.status && one.why === other.why && one.retryInMs === other.retryInMs && one.refusal === other.refusal,
  onServer: { status: "disconnected" },
};

const SAVED: LiveValue<SavedView> = {
  events: ["saved", "stored", "saving", "unsyncedChanges"],
  read: ({ saved, stored, saving, unsavedEdits }) => ({ saved, stored, saving, unsavedEdits }),
  isSame: (one, other) =>
    one.saved === other.saved && one.stored === other.stored && one.saving === other.saving && one.unsavedEdits === other.unsavedEdits,
  onServer: { saved: true, stored: true, saving: "saved", unsavedEdits: 0 },
};

/** A participant's object is replaced when something in it changes. */
const PARTICIPANTS: LiveValue<readonly Participant[]> = {
  events: ["participants", "presence"],
  read: ({ participants }) => [...participants.values()],
  isSame: (one, other) => one.length === other.length && one.every((participant, index) => participant === other[index]),
  onServer: [],
};

function useValue<Value extends object>(room: AnyRoom, { events, read, isSame, onServer }: LiveValue<Value>): Value {
  const { provider } = room as OpenRoom;
  const live = useMemo(() => {
    let value = read(provider);
    return {
      subscribe: (onChange: () => void) => {
        for (const event of events) provider.on(event, onChange);
        return () => {
          for (const event of events) provider.off(event, onChange);
        };
      },
      get: () => {
        const next = read(provider);
        if (!isSame(value, next)) value = next;
        return value;
      },
    };
  }, [provider, events, read, isSame]);
  return useSyncExternalStore(live.subscribe, live.get, () => onServer);
}
