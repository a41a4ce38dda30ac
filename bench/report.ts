/** Turns measurements into figures, and the figures of several systems into a table with their ratios. */

import { Latencies } from "../cli/bench/latencies.ts";
import { bestOf, type EditPathLeg, type MeasuredPhase, rateOf, type Scenario, slowestP99 } from "./edit-path.bench.ts";
import type { CpuByRole } from "./server-usage.ts";

/** In display order. */
export type Figures = Readonly<Record<string, number>>;

/** Coroom's roles that are not on an edit's path. The relay has no equivalent. */
const BESIDE_THE_PATH = new Set(["placement", "document-service"]);
const PERCENTS = [50, 90, 99, 99.9];

export function figuresOf(scenario: Scenario, legs: readonly EditPathLeg[]): Figures {
  return scenario.load.kind === "typing" ? typingFigures(legs) : searchFigures(legs);
}

function typingFigures(legs: readonly EditPathLeg[]): Figures {
  const phases = legs.flatMap((leg) => leg.phases);
  const [seen, acked] = [merged(phases.map((phase) => phase.seen)), merged(phases.map((phase) => phase.acked))];
  return {
    ...Object.fromEntries(PERCENTS.map((percent) => [`propagation p${percent}, ms`, seen.percentile(percent)])),
    ...Object.fromEntries(PERCENTS.map((percent) => [`ack p${percent}, ms`, acked.percentile(percent)])),
    "deliveries a second": sum(phases.map(({ delivered }) => delivered)) / sum(phases.map(({ seconds }) => seconds)),
    ...cpuFigures(phases),
  };
}

/** The best round of each system: other work on the machine can only reduce the rate. */
function searchFigures(legs: readonly EditPathLeg[]): Figures {
  const best = bestOf(legs.flatMap((leg) => leg.phases));
  if (best === undefined) return {};
  return {
    "edits a second": rateOf(best),
    "propagation p50, ms": best.seen.percentile(50),
    "propagation p99, ms": best.seen.percentile(99),
    "ack p99, ms": best.acked.percentile(99),
    ...cpuFigures([best]),
  };
}

function cpuFigures(phases: readonly MeasuredPhase[]): Figures {
  const delivered = sum(phases.map((phase) => phase.delivered));
  const micros = (wanted: (role: string) => boolean): number =>
    (1e6 * sum(phases.map(({ serverCpu }) => secondsOf(serverCpu, wanted)))) / delivered;
  const roles = [...new Set(phases.flatMap(({ serverCpu }) => Object.keys(serverCpu)))];
  return {
    "CPU a delivered edit, µs": micros((role) => !BESIDE_THE_PATH.has(role)),
    ...Object.fromEntries(roles.map((role) => [`  ${role}, µs`, micros((other) => other === role)])),
    "load's own CPU, cores": coresOf(phases, ({ cpuSeconds }) => cpuSeconds),
    "others' CPU, cores": coresOf(phases, othersCpuSeconds),
  };
}

/**
 * Median of each figure of each system over the rounds that contain it. For an even number: the mean of the middle two.
 */
export function medianFigures(rounds: readonly Readonly<Record<string, Figures>>[]): Readonly<Record<string, Figures>> {
  return Object.fromEntries(
    keysOf(rounds).map((system) => {
      const ofSystem = rounds.map((figures) => figures[system]).filter((figures) => figures !== undefined);
      const medianOf = (name: string): number => median(ofSystem.map((figures) => figures[name]).filter((figure) => figure !== undefined));
      return [system, Object.fromEntries(keysOf(ofSystem).map((name) => [name, medianOf(name)]))];
    }),
  );
}

function keysOf(records: readonly object[]): string[] {
  return [...new Set(records.flatMap((record) => Object.keys(record)))];
}

function median(numbers: readonly number[]): number {
  const sorted = [...numbers].sort((a, b) => a - b);
  return (sorted[Math.floor((sorted.length - 1) / 2)]! + sorted[Math.floor(sorted.length / 2)]!) / 2;
}

/** One line for each figure: its value for each system, and the first system's value as a multiple of each other's. */
export function table(figures: Readonly<Record<string, Figures>>): string {
  const [first, ...others] = Object.keys(figures);
  const names = [...new Set(Object.values(figures).flatMap((ofSystem) => Object.keys(ofSystem)))];
  const width = Math.max(...names.map((name) => name.length));
  const line = (name: string, cells: readonly string[]): string =>
    `  ${name.padEnd(width)} ${cells.map((cell) => cell.padStart(12)).join("")}`;
  return [
    line("", [...Object.keys(figures), ...others.map((other) => `/ ${other}`)]),
    ...names.map((name) => {
      const own = figures[first!]?.[name];
      return line(name, [
        shown(own),
        ...others.map((other) => shown(figures[other]?.[name])),
        ...others.map((other) => ratio(own, figures[other]?.[name])),
      ]);
    }),
  ].join("\n");
}

function ratio(own: number | undefined, other: number | undefined): string {
  return own === undefined || other === undefined || other === 0 ? "" : `${(own / other).toFixed(2)}x`;
}

/** Facts of one phase. */
export function phaseFacts(phase: MeasuredPhase) {
  return {
    pattern: phase.pattern,
    editsPerSecond: rateOf(phase),
    p99Ms: slowestP99(phase),
    serverCores: coresOf([phase], ({ serverCpu }) => secondsOf(serverCpu, () => true)),
    loadCores: coresOf([phase], ({ cpuSeconds }) => cpuSeconds),
    othersCores: coresOf([phase], othersCpuSeconds),
  };
}

export function phaseSummary(phase: MeasuredPhase): string {
  const { pattern, editsPerSecond, p99Ms, serverCores, loadCores, othersCores } = phaseFacts(phase);
  return `${patternText(pattern).padEnd(22)} ${shown(editsPerSecond).padStart(10)} edits/s   p99 ${shown(p99Ms).padStart(8)} ms   cores: servers ${shown(serverCores)}, load ${shown(loadCores)}, others ${shown(othersCores)}`;
}

function patternText(pattern: MeasuredPhase["pattern"]): string {
  return pattern.kind === "typing" ? `${pattern.editsPerSecond}/s a writer` : `${pattern.inFlight} un-acked a writer`;
}

function coresOf(phases: readonly MeasuredPhase[], cpuSeconds: (phase: MeasuredPhase) => number): number {
  return sum(phases.map(cpuSeconds)) / sum(phases.map(({ seconds }) => seconds));
}

/** CPU of the rest of the machine, including the system that is not being measured. */
function othersCpuSeconds({ machineCpuSeconds, serverCpu, cpuSeconds }: MeasuredPhase): number {
  return Math.max(0, machineCpuSeconds - secondsOf(serverCpu, () => true) - cpuSeconds);
}

function secondsOf(cpu: CpuByRole, wanted: (role: string) => boolean): number {
  return sum(Object.entries(cpu).map(([role, seconds]) => (wanted(role) ? seconds : 0)));
}

function merged(all: readonly Latencies[]): Latencies {
  const together = new Latencies();
  for (const latencies of all) together.add(latencies);
  return together;
}

function shown(figure: number | undefined): string {
  if (figure === undefined || Number.isNaN(figure)) return "";
  return figure >= 100 ? Math.round(figure).toLocaleString("en-US") : figure.toPrecision(3);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
