/** The text that `coroom bench` prints for people. */

import { type BenchFigures, count, type CountedReason, type LatencySummary } from "./figures.ts";
import type { BenchLoad } from "./plan.ts";

const MISSING_LINES_MAX = 20;
const LABEL_WIDTH = 16;

export function loadText(url: string, tenant: string, load: BenchLoad): string {
  const { rooms, people, editRate, cursorRate, seconds } = load;
  return `${url}, tenant ${tenant}: ${rooms === 1 ? "1 room" : `${count(rooms)} rooms`} of ${people} people, ${count(editRate)} edits and ${count(cursorRate)} cursor moves per second for ${seconds} s`;
}

export function reportText(figures: BenchFigures): string {
  const { connections, edits, cursors, refusals, disconnects, reconnects, generator } = figures;
  const opened = line("connections", `${count(connections.opened)} of ${count(connections.wanted)} opened`);
  if (connections.opened === 0) return [opened, ...reasonLines("refusals", refusals)].join("\n");
  return [
    opened,
    line("  joined after", times(connections.joinMs)),
    line(
      "edits",
      `${count(edits.sent)} sent, ${count(edits.acknowledged)} acknowledged, ${count(edits.received)} of ${count(edits.expected)} receipts by other people`,
    ),
    line("  acknowledged", times(edits.acknowledgedMs)),
    line("  received", times(edits.receivedMs)),
    ...missingLines(figures),
    line("cursor moves", `${count(cursors.sent)} sent, ${count(cursors.seen)} seen by other people; later moves replace earlier ones`),
    line("  seen", times(cursors.seenMs)),
    ...reasonLines("refusals", refusals),
    ...reasonLines("disconnects", disconnects),
    line("reconnects", reconnects.count === 0 ? "none" : `${count(reconnects.count)}, back after ${times(reconnects.awayMs)}`),
    line("generator", `${generator.cpuCores.toFixed(2)} of a core, late by ${times(generator.lateMs)}`),
    line("rooms", roomsText(figures)),
    ...remarks(figures),
  ].join("\n");
}

function missingLines({ edits: { missing } }: BenchFigures): string[] {
  const lines = missing
    .slice(0, MISSING_LINES_MAX)
    .map(({ room, person, author, edits, isConnected }) =>
      line(
        "  MISSING",
        person === author
          ? `${room}: edits ${edits} of ${author} were not acknowledged`
          : `${room}: ${person}${isConnected ? "" : " (not connected at the end)"} lacks edits ${edits} of ${author}`,
      ),
    );
  return missing.length > MISSING_LINES_MAX
    ? [...lines, line("  MISSING", `and ${count(missing.length - MISSING_LINES_MAX)} more`)]
    : lines;
}

function reasonLines(label: string, reasons: readonly CountedReason[]): string[] {
  if (reasons.length === 0) return [line(label, "none")];
  return reasons.map(({ reason, count: times, message }, index) => line(index === 0 ? label : "", `${count(times)} ${reason}: ${message}`));
}

function roomsText({ tenant, rooms: { deleted, left, why } }: BenchFigures): string {
  if (left.length === 0) return `${count(deleted)} deleted`;
  return `${count(deleted)} deleted, ${count(left.length)} left (${why}). Delete each with coroom delete-room ROOM --tenant ${tenant}. Rooms: ${left.slice(0, 5).join(" ")}${left.length > 5 ? " …" : ""}`;
}

function remarks({ generator, url }: BenchFigures): string[] {
  const { hostname } = new URL(url);
  return [
    ...(generator.isLimit
      ? [
          "The generator was the limit, or other programs on its machine: its own delay is part of these times, so they are not the cluster's. Lower the load, use an idle or faster machine, or run several generators with a part of the load each.",
        ]
      : []),
    ...(["127.0.0.1", "localhost", "[::1]"].includes(hostname)
      ? [
          "The generator and this gateway share one machine, so each takes CPU from the other. Run it from another machine to size a cluster.",
        ]
      : []),
  ].flatMap((text) => ["", text]);
}

function line(label: string, text: string): string {
  return `${label.padEnd(LABEL_WIDTH)}${text}`;
}

function times(summary: LatencySummary): string {
  return summary === undefined ? "not measured" : `p50 ${ms(summary.p50)}, p99 ${ms(summary.p99)}, max ${ms(summary.max)}`;
}

function ms(value: number): string {
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;
}
