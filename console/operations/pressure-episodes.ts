/**
 * Episodes of overload: a gateway that sheds presence, and rooms that a room server throttles. A busy tenant has many
 * throttled rooms, so rooms of one tenant that are throttled at the same time are one episode.
 */

import type { ListedEvent } from "./answers.ts";
import { type Episode, type EpisodeSpan, number, overlaps, text } from "./episode-spans.ts";
import { bytes, counted, droppedAt, duration, shortName, throttledAt } from "./format.ts";

/** The levels of one gateway or room from its first rise until it is back at 0. */
type Pressure = { readonly first: ListedEvent; readonly last: ListedEvent; readonly worst: ListedEvent; readonly lateMs: number };

/** `outages`: times in which gateways did not reach NATS. Their rows explain why these gateways dropped presence. */
export function pressureEpisodes(events: readonly ListedEvent[], outages: readonly EpisodeSpan[]): Episode[] {
  const open = new Map<string, Pressure>();
  const all: Pressure[] = [];
  for (const event of events) {
    if (event.kind !== "shed_level" && event.kind !== "room_budget") continue;
    const subject = event.kind === "shed_level" ? `gateway ${event.by}` : `room ${text(event, "tenant")} ${text(event, "room")}`;
    const before = open.get(subject);
    const rises = number(event, "to") > number(event, "from");
    const pressure: Pressure = {
      first: before?.first ?? event,
      last: event,
      worst: before !== undefined && number(before.worst, "to") >= number(event, "to") ? before.worst : event,
      lateMs: Math.max(before?.lateMs ?? 0, rises ? number(event, "delayMs") : 0),
    };
    open.delete(subject);
    if (number(event, "to") === 0) all.push(pressure);
    else open.set(subject, pressure);
  }
  all.push(...open.values());
  const isOfGateway = ({ first }: Pressure): boolean => first.kind === "shed_level";
  const ofGateways = all.filter((each) => isOfGateway(each) && !isOfOutage(each, outages));
  return [...ofGateways.map(gatewayEpisode), ...byTenant(all.filter((each) => !isOfGateway(each))).map(roomsEpisode)];
}

/** A silent NATS is a slow one until the gateway knows that it is lost. */
function isOfOutage({ worst }: Pressure, outages: readonly EpisodeSpan[]): boolean {
  const at = Date.parse(worst.at);
  return (
    text(worst, "cause") === "nats-lag" && outages.some((each) => each.by.includes(worst.by) && overlaps({ from: at, until: at }, each))
  );
}

/** The beginning may be older than the known events. */
function worstLevel({ first, worst }: Pressure): number {
  return Math.max(number(worst, "to"), number(first, "from"));
}

function gatewayEpisode(pressure: Pressure): Episode {
  const { first, last, worst } = pressure;
  const [level, from, highest] = [number(last, "to"), number(last, "from"), worstLevel(pressure)];
  const name = `Gateway ${shortName(first.by)}`;
  const direction = level > from ? `rose to level ${level}` : `eased to level ${level}`;
  const ongoing = level === highest ? direction : `${direction}, worst level ${highest}`;
  return {
    key: `${first.kind} ${first.seq}`,
    at: first.at,
    until: level === 0 ? last.at : undefined,
    tone: "warning",
    what: level === 0 ? `${name} was under pressure, worst level ${highest}` : `${name} is under pressure: ${ongoing}`,
    why: causeOfShedding(worst, highest),
    by: first.by,
  };
}

function causeOfShedding(worst: ListedEvent, highest: number): string {
  const causes: Readonly<Record<string, string>> = {
    "delay": `its event loop was ${ms(number(worst, "delayMs"))} late`,
    "outbound": `clients had ${bytes(number(worst, "outboundBytes"))} unread`,
    "nats-lag": `NATS took ${ms(number(worst, "natsLagMs"))} or more to answer`,
  };
  const cause = causes[text(worst, "cause")];
  return [...(cause === undefined ? [] : [cause]), `dropped ${droppedAt(highest)}`].join("; ");
}

const isOver = ({ last }: Pressure): boolean => number(last, "to") === 0;
const endOf = (pressure: Pressure): number => (isOver(pressure) ? Date.parse(pressure.last.at) : Infinity);

/** Groups of rooms of one tenant and server whose times overlap, each in the order of their beginnings. */
function byTenant(pressures: readonly Pressure[]): Pressure[][] {
  const groups: Pressure[][] = [];
  for (const pressure of pressures.toSorted((a, b) => Date.parse(a.first.at) - Date.parse(b.first.at))) {
    const { first } = pressure;
    const group = groups.find(
      (others) =>
        others[0]!.first.by === first.by &&
        text(others[0]!.first, "tenant") === text(first, "tenant") &&
        Math.max(...others.map(endOf)) >= Date.parse(first.at),
    );
    if (group === undefined) groups.push([pressure]);
    else group.push(pressure);
  }
  return groups;
}

const NAMES_MAX = 3;

function roomsEpisode(group: readonly Pressure[]): Episode {
  const { first } = group[0]!;
  const names = [...new Set(group.map((each) => text(each.first, "room")))];
  const [isOne, isPast] = [names.length === 1, group.every(isOver)];
  const subject = isOne ? `${names[0]} of ${text(first, "tenant")}` : `${counted(names.length, "room")} of ${text(first, "tenant")}`;
  const verb = isPast ? (isOne ? "was" : "were") : isOne ? "is" : "are";
  const now = Math.max(...group.map(({ last }) => number(last, "to")));
  const worst = Math.max(...group.map(worstLevel));
  const lateMs = Math.max(...group.map((each) => each.lateMs));
  const late = lateMs === 0 ? "was late" : `was up to ${ms(lateMs)} late`;
  const more = names.length > NAMES_MAX ? ` and ${counted(names.length - NAMES_MAX, "more", "more")}` : "";
  return {
    key: `${first.kind} ${first.seq}`,
    at: first.at,
    until: isPast
      ? group
          .map(({ last }) => last.at)
          .toSorted((a, b) => Date.parse(a) - Date.parse(b))
          .at(-1)!
      : undefined,
    tone: "warning",
    what: isPast
      ? `${subject} ${verb} throttled, at worst: ${throttledAt(worst)}`
      : `${subject} ${verb} throttled: ${throttledAt(now)}${worst === now ? "" : `, at worst: ${throttledAt(worst)}`}`,
    why: `${isOne ? "" : `${names.slice(0, NAMES_MAX).join(", ")}${more}; `}the event loop of ${shortName(first.by)} ${late}, and ${isOne ? "this room was among those that" : "these rooms"} used most of its time`,
    by: first.by,
  };
}

function ms(value: number): string {
  return duration(value / 1_000);
}
