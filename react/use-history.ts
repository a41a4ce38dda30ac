/** The hook `useHistory`: stored versions of a room's document, over the HTTP API of a gateway. */

import { useCallback, useEffect, useMemo, useState } from "react";

import { useRooms } from "./coroom-provider.ts";
import type { OpenRoom } from "./used-rooms.ts";

/** `name`: null for a version that the server stored by itself. `time`: milliseconds since 1970. */
export type HistoryVersion = {
  readonly id: string;
  readonly seq: number;
  readonly epoch: number;
  readonly time: number;
  readonly name: string | null;
  readonly bytes: number;
};

/** The server's answer. `readableFrom`: first seq from which every state can be read; null: only recent states. */
type Versions = { readonly versions: readonly HistoryVersion[]; readonly readableFrom: number | null };

type Loaded = { readonly state: "loading" | "ready" | "failed"; readonly error?: Error } & Versions;

/** Each method rejects with the server's message if the request fails. */
export type HistoryView = Loaded & {
  /** Reads the list again. */
  readonly reload: () => void;
  /** The document at this seq, for `Y.applyUpdate` of an empty document. */
  readonly contentAt: (seq: number) => Promise<Uint8Array>;
  /** Stores the document as a named version, with every edit that this page has received. */
  readonly saveVersion: (name: string) => Promise<void>;
  /** Restores the state at this seq by a new edit, which everybody in the room receives. */
  readonly restore: (seq: number) => Promise<void>;
};

const LOADING: Loaded = { state: "loading", versions: [], readableFrom: null };

export function useHistory(room: OpenRoom<never> | OpenRoom): HistoryView {
  const rooms = useRooms();
  const { name, provider } = room as OpenRoom;
  const [loaded, setLoaded] = useState(LOADING);
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
      .then((answer) => reader.signal.aborted || setLoaded(answer));
    return () => reader.abort();
  }, [rooms, name, reading]);

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
  return { ...loaded, reload, ...actions };
}
