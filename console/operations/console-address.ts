/**
 * The state of the page, as the part of its address after `#`: tab, time range, process, room and filters. The address
 * can be sent to a colleague, and contains no pass. A browser sends this part to no server.
 */

import type { RoomName } from "./answers.ts";
import { EVENT_FILTERS, type EventFilter } from "./event-rows.ts";

export const TABS = ["overview", "charts", "events"] as const;
export type ConsoleTab = (typeof TABS)[number];
export const RANGES = [5, 15, 60] as const;

export type ConsoleAddress = {
  readonly tab: ConsoleTab;
  /** Of the charts. */
  readonly minutes: (typeof RANGES)[number];
  /** Charts of this process only. */
  readonly process: string;
  readonly room: RoomName | undefined;
  readonly events: EventFilter;
  /** Searched text in events. */
  readonly find: string;
};

export const START_PAGE: ConsoleAddress = { tab: "overview", minutes: 15, process: "", room: undefined, events: "notable", find: "" };

/** Unknown parts are ignored: an address may come from another version. */
export function parseConsoleAddress(hash: string): ConsoleAddress {
  const parts = new URLSearchParams(hash.replace(/^#/, ""));
  const chosen = <Name extends string>(name: string, all: readonly Name[], fallback: Name): Name =>
    all.find((each) => each === parts.get(name)) ?? fallback;
  const [tenant, room] = [parts.get("tenant"), parts.get("room")];
  return {
    tab: chosen("tab", TABS, START_PAGE.tab),
    minutes: RANGES.find((minutes) => String(minutes) === parts.get("minutes")) ?? START_PAGE.minutes,
    process: parts.get("process") ?? "",
    room: tenant === null || room === null ? undefined : { tenant, room },
    events: chosen("events", Object.keys(EVENT_FILTERS) as EventFilter[], START_PAGE.events),
    find: parts.get("find") ?? "",
  };
}

/** Contains only what differs from the start page. */
export function consoleAddress({ tab, minutes, process, room, events, find }: ConsoleAddress): string {
  const parts = Object.entries({ tab, minutes, process, events, find }).filter(([name, value]) => value !== START_PAGE[name as "tab"]);
  const text = String(new URLSearchParams([...parts.map(([name, value]) => [name, String(value)]), ...Object.entries(room ?? {})]));
  return text === "" ? "" : `#${text}`;
}
