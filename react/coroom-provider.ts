/** The component `CoroomProvider`: one connection to the server for all rooms below it. */

import { createContext, createElement, type ReactNode, useContext, useInsertionEffect, useMemo } from "react";

import type { DeviceStore } from "@coroom/client";
import { UsedRooms } from "./used-rooms.ts";

/** Properties of `CoroomProvider`. */
export type CoroomProviderProps = {
  /** URL of the server: `wss://host`, `ws://host:port`, `https:` or `http:`. */
  readonly url: string;
  /** A JWT, or a function that returns one. The function may change in each render. Its token must open all rooms below. */
  readonly token: string | (() => string | Promise<string>);
  /** Keeps rooms on this device: `indexedDbStore()` of `@coroom/client/indexeddb`. Create it once, outside of components. */
  readonly store?: DeviceStore | undefined;
  /** Components that use rooms. */
  readonly children?: ReactNode;
};

const RoomsContext = createContext<UsedRooms | undefined>(undefined);

/** One connection to the server for all rooms of the components below it. */
export function CoroomProvider({ url, token, store, children }: CoroomProviderProps): ReactNode {
  const given = { token, store };
  const fixedToken = typeof token === "string" ? token : undefined;
  const rooms = useMemo(() => new UsedRooms(url, given), [url, fixedToken]);
  useInsertionEffect(() => {
    rooms.given = given; // The rooms of an earlier URL or token keep theirs.
  });
  return createElement(RoomsContext.Provider, { value: rooms }, children);
}

/** The rooms of the nearest `CoroomProvider`. */
export function useRooms(): UsedRooms {
  const rooms = useContext(RoomsContext);
  if (rooms === undefined)
    throw new Error("useRoom, useHistory and useTenantBoard need a <CoroomProvider url={…} token={…}> above the component.");
  return rooms;
}
