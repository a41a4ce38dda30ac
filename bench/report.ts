/** Turns legs into figures, and figures of two systems into a table with their ratio. */

import type { CpuByRole } from "./cpu.ts";
import { bestOf, type Leg, type MeasuredPhase, rateOf, type Scenario, slowestP99 } from "./edit-path.bench.ts";
import { Latencies } from "./load/latencies.ts";

/** In the order they are shown. */
export type Figures = Readonly<Record<string, number>>;

/** Coroom's roles that stand beside an edit's path: their work is real, and a relay has none of it. */
const BESIDE_THE_PATH = new Set(["placement", "document-service"]);
const PERCENTS = [50, 90, 99, 99.9];

export function figuresOf(scenario: Scenario, legs: readonly Leg[]): Figures {
  return scenario.load.kind === "typing" ? typingFigures(legs) : searchFigures(legs);
}

function typingFigures(legs: readonly Leg[]): Figures {
  const phases = legs.flatMap((leg) => leg.phases);
  const [seen, acked] = [merged(phases.map((phase) => phase.seen)), merged(phases.map((phase) => phase.acked))];
  return {
    ...Object.fromEntries(PERCENTS.map((percent) => [`propagation p${percent}, ms`, seen.percentile(percent)])),
    ...Object.fromEntries(PERCENTS.map((percent) => [`ack p${percent}, ms`, acked.percentile(percent)])),
    "deliveries a second": sum(phases.map(({ delivered }) => delivered)) / sum(phases.map(({ seconds }) => seconds)),
    ...cpuFigures(phases),
  };
}

/** The best round of each system: the machine's other work only ever takes away. */
function searchFigures(legs: readonly Leg[]): Figures {
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

/** Of each figure of each system, of those rounds that have it; of an even number the mean of the middle two. */
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

/** One line a figure: each system's, and the first's as a multiple of each other's. */
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

/** One phase by itself. */
export function phaseFacts(phase: MeasuredPhase) {
  return {
    pace: phase.pace,
    editsPerSecond: rateOf(phase),
    p99Ms: slowestP99(phase),
    serverCores: coresOf([phase], ({ serverCpu }) => secondsOf(serverCpu, () => true)),
    loadCores: coresOf([phase], ({ cpuSeconds }) => cpuSeconds),
    othersCores: coresOf([phase], othersCpuSeconds),
  };
}

export function phaseLine(phase: MeasuredPhase): string {
  const { pace, editsPerSecond, p99Ms, serverCores, loadCores, othersCores } = phaseFacts(phase);
  return `${paceText(pace).padEnd(22)} ${shown(editsPerSecond).padStart(10)} edits/s   p99 ${shown(p99Ms).padStart(8)} ms   cores: servers ${shown(serverCores)}, load ${shown(loadCores)}, others ${shown(othersCores)}`;
}

function paceText(pace: MeasuredPhase["pace"]): string {
  return pace.kind === "typing" ? `${pace.editsPerSecond}/s a writer` : `${pace.inFlight} un-acked a writer`;
}

function coresOf(phases: readonly MeasuredPhase[], cpuSeconds: (phase: MeasuredPhase) => number): number {
  return sum(phases.map(cpuSeconds)) / sum(phases.map(({ seconds }) => seconds));
}

/** What the rest of the machine did meanwhile, the system that is not measured included. */
function othersCpuSeconds({ machineCpuSeconds, serverCpu, cpuSeconds }: MeasuredPhase): number {
  return Math.max(0, machineCpuSeconds - secondsOf(serverCpu, () => true) - cpuSeconds);
}

function secondsOf(cpu: CpuByRole, wanted: (role: string) => boolean): number {
  return sum(Object.entries(cpu).map(([role, seconds]) => (wanted(role) ? seconds : 0)));
}

function merged(all: readonly Latencies[]): Latencies {
  const whole = new Latencies();
  for (const latencies of all) whole.add(latencies);
  return whole;
}

function shown(figure: number | undefined): string {
  if (figure === undefined || Number.isNaN(figure)) return "";
  return figure >= 100 ? Math.round(figure).toLocaleString("en-US") : figure.toPrecision(3);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
