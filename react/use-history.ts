/** The hook `useHistory`: stored versions of a room's document, over the HTTP API of a gateway. */

import { useCallback, useEffect, useMemo, useState } from "react";

import { useRooms } from "./coroom-provider.ts";
import type { OpenRoom } from "./used-rooms.ts";

/** A stored version of the document. */
export type HistoryVersion = {
  /** Unique in the room. */
  readonly id: string;
  /** Seq of its last edit. */
  readonly seq: number;
  /** Epoch of its last edit. */
  readonly epoch: number;
  /** Milliseconds since 1970. */
  readonly time: number;
  /** Null: the server stored the version by itself. */
  readonly name: string | null;
  /** Size in bytes. */
  readonly bytes: number;
};

/** The versions of a room. Each method rejects with the server's message if the request fails. */
export type HistoryView = {
  /** Whether the list of versions is being read, was read, or could not be read. */
  readonly state: "loading" | "ready" | "failed";
  /** Why the list could not be read. */
  readonly error?: Error;
  /** The stored versions, oldest first. */
  readonly versions: readonly HistoryVersion[];
  /** First seq from which every state can be read. Null: only the stored versions and recent states. */
  readonly readableFrom: number | null;
  /** Reads the list again. */
  readonly reload: () => void;
  /** The document at this seq, for `Y.applyUpdate` of an empty document. */
  readonly contentAt: (seq: number) => Promise<Uint8Array>;
  /** Stores the document as a named version, with every edit that this page has received. */
  readonly saveVersion: (name: string) => Promise<void>;
  /** Restores the state at this seq by a new edit, which everybody in the room receives. */
  readonly restore: (seq: number) => Promise<void>;
};

/** The server's answer. */
type Versions = Pick<HistoryView, "versions" | "readableFrom">;

type Loaded = Versions & Pick<HistoryView, "state" | "error">;

const LOADING: Loaded = { state: "loading", versions: [], readableFrom: null };
const NO_ANSWER = { loaded: LOADING };

/** Stored versions of a room's document, read over HTTP when the component is mounted. */
export function useHistory(room: OpenRoom<never> | OpenRoom): HistoryView {
  const rooms = useRooms();
  const { name, provider } = room as OpenRoom;
  const [answer, setAnswer] = useState<{ readonly of?: typeof provider; readonly loaded: Loaded }>(NO_ANSWER);
  const [reading, setReading] = useState(0);
  const reload = useCallback(() => setReading((count) => count + 1), []);

  useEffect(() => {
    const reader = new AbortController();
    rooms
      .request(name, "versions", { signal: reader.signal })
      .then(async (answer) => ({ state: "ready" as const, ...((await answer.json()) as Versions) }))
      .catch((error: unknown) => ({
        ...LOADING,
        state: "failed" as const,
        error: error instanceof Error ? error : new Error(String(error)),
      }))
      .then((loaded) => reader.signal.aborted || setAnswer({ of: provider, loaded }));
    return () => reader.abort();
  }, [rooms, name, provider, reading]);

  const actions = useMemo(() => {
    /** Waits until the server's document contains every edit that this page has received. */
    const readThrough = async (): Promise<void> => {
      if (provider.seq > 0) await rooms.request(name, `snapshot?minSeq=${provider.seq}`, { method: "HEAD" });
    };
    return {
      contentAt: async (seq: number) => new Uint8Array(await (await rooms.request(name, `past?seq=${seq}`)).arrayBuffer()),
      saveVersion: async (title: string) => {
        await readThrough();
        const body = JSON.stringify({ name: title });
        await rooms.request(name, "versions", { method: "POST", headers: { "content-type": "application/json" }, body });
        reload();
      },
      restore: async (seq: number) => {
        await readThrough();
        await rooms.request(name, `restore?seq=${seq}`, { method: "POST" });
        reload();
      },
    };
  }, [rooms, name, provider, reload]);
  const { loaded } = answer.of === provider ? answer : NO_ANSWER; // Another room's versions must not be restored here.
  return { ...loaded, reload, ...actions };
}
