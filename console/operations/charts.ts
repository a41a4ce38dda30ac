/**
 * The charts of the console, and the values of the last hour that the page has received. Slots are numbered equally by
 * every gateway, so a later answer continues an earlier one.
 */

import type { VitalsAnswer } from "./answers.ts";
import { bytes, clockTime, count, duration } from "./format.ts";

export type ChartLine = { readonly key: string; readonly label: string };
export type Chart = {
  readonly id: string;
  readonly title: string;
  /** What the chart measures. */
  readonly hint: string;
  readonly show: (value: number) => string;
  readonly lines: readonly ChartLine[];
};

/** The most important first. The key of a line is its role and vital. */
export const CHARTS: readonly Chart[] = [
  {
    id: "save",
    title: "Save and propagation",
    hint: "From the receipt of an edit by a gateway until the log has it and the members get it",
    show: duration,
    lines: [
      { key: "gateway saveP50", label: "p50" },
      { key: "gateway saveP99", label: "p99" },
    ],
  },
  {
    id: "append",
    title: "Log append",
    hint: "From the sending of a record by a room server until JetStream confirms it",
    show: duration,
    lines: [
      { key: "room-server appendP50", label: "p50" },
      { key: "room-server appendP99", label: "p99" },
    ],
  },
  {
    id: "nats",
    title: "NATS round trip",
    hint: "From a gateway to NATS and back",
    show: duration,
    lines: [{ key: "gateway natsLag", label: "round trip" }],
  },
  {
    id: "loop",
    title: "Event loop delay",
    hint: "How late a busy process handles messages, p90",
    show: duration,
    lines: [
      { key: "gateway loopDelay", label: "gateway" },
      { key: "room-server loopDelay", label: "room server" },
    ],
  },
  {
    id: "people",
    title: "Connections",
    hint: "Open connections of clients, and participants of rooms",
    show: count,
    lines: [
      { key: "gateway connections", label: "connections" },
      { key: "room-server participants", label: "participants" },
    ],
  },
  {
    id: "refused",
    title: "Refused connections",
    hint: "Connections that gateways closed before their token was accepted, per second",
    show: perSecond,
    lines: [{ key: "gateway refusedPerSecond", label: "refused" }],
  },
  {
    id: "edits",
    title: "Edits",
    hint: "Edits that the log stored, per second",
    show: perSecond,
    lines: [{ key: "room-server editsPerSecond", label: "edits" }],
  },
  {
    id: "presence",
    title: "Presence",
    hint: "Presence frames that gateways received, per second",
    show: perSecond,
    lines: [{ key: "gateway presencePerSecond", label: "frames" }],
  },
  {
    id: "outbound",
    title: "Outbound delay",
    hint: "Age of the oldest data that a client has not read, p99 of all connections",
    show: duration,
    lines: [{ key: "gateway outboundP99", label: "p99" }],
  },
  {
    id: "shed",
    title: "Shed level",
    hint: "Steps of the drop order of presence that are in effect, 0 to 6",
    show: count,
    lines: [{ key: "gateway shedLevel", label: "level" }],
  },
  {
    id: "memory",
    title: "Memory",
    hint: "Resident memory of a process; roles in one process show the same",
    show: bytes,
    lines: [
      { key: "gateway memoryBytes", label: "gateway" },
      { key: "room-server memoryBytes", label: "room server" },
      { key: "document-service memoryBytes", label: "documents" },
      { key: "leaderboard memoryBytes", label: "leaderboard" },
      { key: "placement memoryBytes", label: "placement" },
    ],
  },
  {
    id: "stored",
    title: "Stored by JetStream",
    hint: "Bytes of all streams on disk",
    show: bytes,
    lines: [{ key: "gateway storedBytes", label: "stored" }],
  },
  {
    id: "disk",
    title: "Free disk",
    hint: "Free bytes of the disk with the local data folder",
    show: bytes,
    lines: [{ key: "gateway diskFreeBytes", label: "free" }],
  },
  { id: "rooms", title: "Rooms", hint: "Open rooms", show: count, lines: [{ key: "room-server rooms", label: "rooms" }] },
  {
    id: "behind",
    title: "Leaderboards behind",
    hint: "Age of the newest moment up to which boards are complete",
    show: duration,
    lines: [{ key: "leaderboard boardsBehind", label: "behind" }],
  },
  {
    id: "uncovered",
    title: "Records without a snapshot",
    hint: "Records that a restart of the document service would read again",
    show: count,
    lines: [{ key: "document-service uncoveredRecords", label: "records" }],
  },
];

export const ROOM_CHART: Chart = {
  id: "room",
  title: "Size and edits",
  hint: "Participants, and edits per second",
  show: (value) => (value < 10 ? String(Math.round(value * 10) / 10) : count(Math.round(value))),
  lines: [
    { key: "participants", label: "participants" },
    { key: "editsPerSecond", label: "edits/s" },
  ],
};

function perSecond(value: number): string {
  return `${value < 10 ? Math.round(value * 10) / 10 : count(Math.round(value))}/s`;
}

/** `from`: slot of the first value of every line. All lines have the same length. */
export type ValuesOverTime = {
  readonly everyMs: number;
  readonly from: number;
  readonly length: number;
  readonly lines: ReadonlyMap<string, readonly (number | null)[]>;
};

export const NO_VALUES: ValuesOverTime = { everyMs: 5_000, from: 0, length: 0, lines: new Map() };
const SLOTS_MAX = 720;
/** Slots that are asked for again: a value may arrive a moment late. */
const REPEATED = 2;

/** `after` of the next request. */
export function askAfter({ from, length }: ValuesOverTime): number {
  return length === 0 ? 0 : Math.max(0, from + length - 1 - REPEATED);
}

/** `lines`: by key, from slot `from` on. An answer that does not continue the known values replaces them. */
export function addValues(
  known: ValuesOverTime,
  {
    everyMs,
    from,
    lines,
  }: { readonly everyMs: number; readonly from: number; readonly lines: ReadonlyMap<string, readonly (number | null)[]> },
): ValuesOverTime {
  const added = Math.max(0, ...[...lines.values()].map(({ length }) => length));
  if (added === 0) return known;
  const continues = known.length > 0 && from >= known.from && from <= known.from + known.length;
  const before = continues ? known : { ...NO_VALUES, from };
  const kept = from - before.from;
  const [length, dropped] = [kept + added, Math.max(0, kept + added - SLOTS_MAX)];
  const merged = new Map<string, (number | null)[]>();
  for (const key of new Set([...before.lines.keys(), ...lines.keys()])) {
    const old = (before.lines.get(key) ?? []).slice(0, kept);
    const values = [...old, ...nulls(kept - old.length), ...(lines.get(key) ?? [])];
    merged.set(key, [...values, ...nulls(length - values.length)].slice(dropped));
  }
  return { everyMs, from: before.from + dropped, length: length - dropped, lines: merged };
}

/** Slots without a value after which a process counts as stopped. */
const SILENT_SLOTS = 6;

/** Explains charts that have no values, or whose process sends none any more. `process` "": all processes. */
export function chartsRemark({ everyMs, from, length, lines }: ValuesOverTime, process: string): string {
  const all = [...lines.values()];
  const last = Math.max(-1, ...all.map((values) => values.findLastIndex((value) => value !== null)));
  if (last < 0)
    return process === ""
      ? "No values yet: each process sends its own every five seconds."
      : "This process has sent no values for an hour: it stopped, or it does not reach NATS.";
  if (process === "" || length - last <= SILENT_SLOTS) return "";
  return `This process stopped, or does not reach NATS: its last values are of ${clockTime(new Date((from + last) * everyMs))}.`;
}

export function linesOf({ series }: Pick<VitalsAnswer, "series">): ReadonlyMap<string, readonly (number | null)[]> {
  return new Map(series.map(({ role, vital, values }) => [`${role} ${vital}`, values]));
}

/**
 * Seconds since the Unix epoch and the values of each line. All charts cover the same minutes, with or without values.
 * Undefined: there is nothing to show.
 */
export function chartData(
  chart: Chart,
  { everyMs, from, length, lines }: ValuesOverTime,
  minutes: number,
): { readonly times: number[]; readonly values: (number | null)[][]; readonly lines: readonly ChartLine[] } | undefined {
  const size = (minutes * 60_000) / everyMs;
  const recent = (values: readonly (number | null)[]): (number | null)[] => [...nulls(size - values.length), ...values.slice(-size)];
  const shown = chart.lines.filter(({ key }) => lines.get(key)?.some((value) => value !== null) === true);
  if (shown.length === 0) return undefined;
  const times = Array.from({ length: size }, (_, index) => ((from + length - size + index) * everyMs) / 1_000);
  return { times, values: shown.map(({ key }) => recent(lines.get(key)!)), lines: shown };
}

/** The range of each line, for users who do not see the lines. */
export function chartText(
  { title, show }: Chart,
  { values, lines }: { readonly values: readonly (readonly (number | null)[])[]; readonly lines: readonly ChartLine[] },
): string {
  const ranges = lines.map(({ label }, index) => {
    const known = values[index]!.filter((value) => value !== null);
    return `${label} ${known.length === 0 ? "without values" : `from ${show(Math.min(...known))} to ${show(Math.max(...known))}`}`;
  });
  return `${title}: ${ranges.join(", ")}`;
}

function nulls(length: number): null[] {
  return Array.from({ length: Math.max(0, length) }, () => null);
}
